{{- define "tidesched.name" -}}
{{- if contains "tidesched" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-tidesched" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tidesched.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/name: tidesched
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "tidesched.selector" -}}
app.kubernetes.io/name: tidesched
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "tidesched.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "tidesched.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "tidesched.secret" -}}
{{- .Values.secrets.existingSecret | default (printf "%s-keys" (include "tidesched.name" .)) }}
{{- end }}

{{- define "tidesched.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "tidesched.installation" -}}
{{- if .Values.installationId }}{{ .Values.installationId }}{{ else }}
{{- $uid := dig "metadata" "uid" "" (lookup "v1" "Namespace" "" .Release.Namespace) | trunc 8 }}
{{- printf "%s-%s-%s" .Release.Namespace (include "tidesched.name" .) $uid | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tidesched.env" -}}
- name: SECRET_KEY
  valueFrom: {secretKeyRef: {name: {{ include "tidesched.secret" . }}, key: secret-key}}
- name: TIDESCHED_KEYS
  valueFrom: {secretKeyRef: {name: {{ include "tidesched.secret" . }}, key: keys}}
- name: DATABASE_URL
{{- if .Values.database.existingSecret }}
  valueFrom: {secretKeyRef: {name: {{ .Values.database.existingSecret }}, key: {{ .Values.database.key }}}}
{{- else }}
  valueFrom: {secretKeyRef: {name: {{ include "tidesched.name" . }}-servers, key: database-url}}
{{- end }}
- name: REDIS_URL
{{- if .Values.redis.existingSecret }}
  valueFrom: {secretKeyRef: {name: {{ .Values.redis.existingSecret }}, key: {{ .Values.redis.key }}}}
{{- else }}
  valueFrom: {secretKeyRef: {name: {{ include "tidesched.name" . }}-servers, key: redis-url}}
{{- end }}
- name: PUBLIC_URL
  value: {{ .Values.publicUrl | quote }}
{{- /* The operator's Prometheus asks a pod by its address. */}}
{{- $pod := ternary ",$(POD_IP),[$(POD_IP)]" "" .Values.metrics.serviceMonitor.enabled }}
{{- if $pod }}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- end }}
- name: ALLOWED_HOSTS
  value: {{ printf "%s,localhost%s%s" (urlParse .Values.publicUrl).hostname (ternary (printf ",%s" .Values.allowedHosts) "" (ne .Values.allowedHosts "")) $pod | quote }}
- name: BEHIND_PROXY
  value: {{ .Values.behindProxy | quote }}
- name: TRUSTED_PROXIES
  value: {{ join "," .Values.trustedProxies | quote }}
- name: LOG_LEVEL
  value: {{ .Values.logLevel | quote }}
- name: TIDESCHED_INSTALLATION_ID
  value: {{ include "tidesched.installation" . | quote }}
- name: TIDESCHED_PROGRESS_DIR
  value: /tmp/progress
- name: NUMBA_CACHE_DIR
  value: /var/cache/tidesched
- name: HOME
  value: /tmp
- name: DATA_DIR
  value: /tmp
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "tidesched.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* One container; `of` has root, name, command, resources and, for the long-lived ones, probes. */}}
{{- define "tidesched.container" -}}
name: {{ .name }}
image: {{ include "tidesched.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
command: {{ toJson .command }}
env:
  {{- include "tidesched.env" .root | nindent 2 }}
  {{- with .role }}
  - name: TIDESCHED_ROLE
    value: {{ . }}
  {{- end }}
  {{- with .env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
securityContext:
  {{- include "tidesched.security" .root | nindent 2 }}
{{- with .resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: kernels, mountPath: /var/cache/tidesched}
{{- end }}

{{- define "tidesched.pod" -}}
metadata:
  labels:
    {{- include "tidesched.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with .root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/servers: {{ toJson (list .root.Values.database .root.Values.redis .root.Values.secrets) | sha256sum }}
    {{- with .root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "tidesched.account" .root }}
  automountServiceAccountToken: {{ .token }}
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile: {type: RuntimeDefault}
  {{- with .root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  volumes:
    - {name: tmp, emptyDir: {}}
    - {name: kernels, emptyDir: {}}
{{- end }}
