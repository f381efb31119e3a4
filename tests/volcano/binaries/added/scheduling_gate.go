// What Volcano 1.15 asks of its module of types and the newest published version of that module does not have yet.
package v1beta1

// QueueAllocationGateKey is the scheduling gate of pods that wait for room in their queue.
const QueueAllocationGateKey = "scheduling.volcano.sh/queue-allocation-gate"
