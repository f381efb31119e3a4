"""A cluster in virtual time: workloads, their controllers, and the loop that lets the scheduler run over them."""
