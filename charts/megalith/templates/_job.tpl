{{/* The spec of a Job. 2 and 70 end it; 75 and evictions are not counted: a pod is made again, in a JobSet with all others. */}}
{{- define "megalith.job" -}}
{{- $set := eq .Values.object "jobset" }}
{{- $again := ternary "FailJob" "Ignore" $set }}
completionMode: Indexed
completions: {{ int64 .Values.nodes }}
parallelism: {{ int64 .Values.nodes }}
{{- if $set }}
backoffLimit: 0
{{- else }}
backoffLimit: {{ mul (int64 .Values.maxRestarts) (int64 .Values.nodes) }}
ttlSecondsAfterFinished: {{ int64 .Values.ttlSeconds }}
{{- end }}
podFailurePolicy:
  rules:
  - action: FailJob
    onExitCodes: {containerName: megalith, operator: In, values: [2, 70]}
  - action: {{ $again }}
    onExitCodes: {containerName: megalith, operator: In, values: [75]}
  - action: {{ $again }}
    onPodConditions:
    - {type: DisruptionTarget, status: "True"}
template:
  metadata:
    labels:
      {{- include "megalith.labels" . | nindent 6 }}
      {{- with .Values.podLabels }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    annotations:
      {{- include "megalith.yaml" .Values.podAnnotations | nindent 6 }}
  spec:
    {{- include "megalith.pod" . | nindent 4 }}
{{- end }}

{{/* The pod of the values, with what is named after the release. */}}
{{- define "megalith.pod" -}}
{{- $set := eq .Values.object "jobset" }}
{{- $name := include "megalith.name" . }}
{{- $volumes := list (dict "name" "megalith" "configMap" (dict "name" $name)) }}
{{- $mounts := list (dict "name" "megalith" "mountPath" "/etc/megalith" "readOnly" true) }}
{{- if .Values.needsSecret }}
{{- $secret := required "existingSecret: make one with `megalith launch kubernetes --make-secret NAME`" .Values.existingSecret }}
{{- $volumes = append $volumes (dict "name" "megalith-secret" "secret" (dict "secretName" $secret "defaultMode" 256)) }}
{{- $mounts = append $mounts (dict "name" "megalith-secret" "mountPath" "/etc/megalith-secret" "readOnly" true) }}
{{- end }}
{{- $host := ternary (printf "%s-workload-0-0" $name) (printf "%s-0" $name) $set }}
{{- $env := concat .Values.container.env (list
      (dict "name" "NNODES" "value" (toString (int64 .Values.nodes)))
      (dict "name" "MASTER_ADDR" "value" (printf "%s.%s" $host $name))
      (dict "name" "MASTER_PORT" "value" (toString (int64 .Values.port)))) }}
{{- if $set }}
{{- $attempt := dict "fieldPath" "metadata.labels['jobset.sigs.k8s.io/restart-attempt']" }}
{{- $env = append $env (dict "name" "MEGALITH_GENERATION" "valueFrom" (dict "fieldRef" $attempt)) }}
{{- end }}
{{- $container := deepCopy .Values.container }}
{{- $_ := set $container "image" (required "container.image: the image that holds megalith" .Values.container.image) }}
{{- $_ := set $container "env" $env }}
{{- $_ := set $container "volumeMounts" (concat $mounts .Values.container.volumeMounts) }}
{{- $pod := deepCopy .Values.pod }}
{{- $_ := set $pod "volumes" (concat $volumes .Values.pod.volumes) }}
{{- $_ := set $pod "containers" (list $container) }}
{{- if not $set }}
{{- $_ := set $pod "subdomain" $name }}
{{- end }}
{{- include "megalith.yaml" $pod }}
{{- end }}
