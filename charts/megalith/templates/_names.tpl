{{/* A Job cannot be changed: each revision has one of its own. */}}
{{- define "megalith.name" -}}
{{ .Release.Name }}-{{ .Release.Revision }}
{{- end }}

{{- define "megalith.labels" -}}
app.kubernetes.io/name: megalith
app.kubernetes.io/instance: {{ include "megalith.name" . }}
{{- end }}

{{/* Of the Job or JobSet: Kueue's labels too. */}}
{{- define "megalith.queueLabels" -}}
{{- if .Values.queue }}
kueue.x-k8s.io/queue-name: {{ .Values.queue | quote }}
{{- with .Values.priorityClass }}
kueue.x-k8s.io/priority-class: {{ . | quote }}
{{- end }}
{{- with .Values.maxRunSeconds }}
kueue.x-k8s.io/max-exec-time-seconds: {{ int64 . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* A value as YAML; as JSON where a text has one of the line ends that do not survive YAML's blocks (\r, U+0085, U+2028, U+2029). */}}
{{- define "megalith.yaml" -}}
{{- $json := toJson . }}
{{- if regexMatch "\\\\r|\\\\u202[89]|\u0085" $json }}
{{- replace "\u0085" "\\u0085" $json }}
{{- else }}
{{- toYaml . }}
{{- end }}
{{- end }}
