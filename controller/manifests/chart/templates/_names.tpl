{{/* Names, labels and modes; controller/manifests/naming.py, objects.py and roles.py are the same in Python. */}}

{{- define "edge.prefix" -}}
{{- if gt (len .Release.Name) 32 -}}
{{- fail (printf "the name of the release, %q, is longer than 32 characters" .Release.Name) -}}
{{- end -}}
{{- if ne .Release.Name "edge-gateway" -}}{{ .Release.Name }}-{{- end -}}
{{- end -}}

{{- define "edge.base" -}}
{{ include "edge.prefix" . }}edge-gateway
{{- end -}}

{{/* For names in other namespaces and cluster-wide ones. */}}
{{- define "edge.clusterPrefix" -}}
{{- if not (and (eq .Release.Name "edge-gateway") (eq .Release.Namespace "edge-gateway-system")) -}}
{{ .Release.Namespace }}-{{ include "edge.prefix" . }}
{{- end -}}
{{- end -}}

{{- define "edge.role" -}}
{{ include "edge.clusterPrefix" .root }}gateway-chart-{{ .what }}
{{- end -}}

{{- define "edge.selector" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/name: edge-gateway
control-plane: edge-gateway
{{- end -}}

{{- define "edge.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/name: edge-gateway
gateway.edge.io/release-namespace: {{ .Release.Namespace | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end -}}

{{/* Metadata: root, name, and what differs: annotations, labels added (ours stay), namespace ("" is none). */}}
{{- define "edge.metadata" -}}
name: {{ .name }}
labels:
  {{- if .labels }}
  {{- merge (include "edge.labels" .root | fromYaml) .labels | toYaml | nindent 2 }}
  {{- else }}
  {{- include "edge.labels" .root | nindent 2 }}
  {{- end }}
{{- $namespace := ternary .namespace .root.Release.Namespace (hasKey . "namespace") }}
{{- with $namespace }}
namespace: {{ . }}
{{- end }}
{{- with .annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "edge.image" -}}
{{- $parts := splitn "@" 2 .image.tag -}}
{{- $digest := .image.digest | default $parts._1 -}}
{{ .image.repository }}:{{ $parts._0 | default .root.Chart.AppVersion }}{{ with $digest }}@{{ . }}{{ end }}
{{- end -}}

{{/* Settings of the cluster provider, under whichever of their two names. */}}
{{- define "edge.cluster" -}}
{{- $provider := .Values.config.edgeGateway.provider | default dict -}}
{{- if and (hasKey $provider "kubernetes") (hasKey $provider "orchestrator") -}}
{{- fail "config.edgeGateway.provider: kubernetes and orchestrator are two names of the same settings" -}}
{{- end -}}
{{- $provider.orchestrator | default $provider.kubernetes | default dict | toYaml -}}
{{- end -}}

{{/* Namespaces with Roles of their own: {namespaces: [...]}, empty when all are watched. */}}
{{- define "edge.watched" -}}
{{- $watch := (include "edge.cluster" . | fromYaml).watch | default dict -}}
{{- $list := list -}}
{{- if eq (default "" $watch.type) "Namespaces" -}}
{{- if not $watch.namespaces -}}{{- fail "config.edgeGateway.provider: watch.namespaces is required with type Namespaces" -}}{{- end -}}
{{- if $watch.namespaceSelector -}}{{- fail "config.edgeGateway.provider: watch.namespaceSelector belongs to type NamespaceSelector" -}}{{- end -}}
{{- $list = append $watch.namespaces .Release.Namespace | uniq | sortAlpha -}}
{{- else if $watch -}}
{{- if $watch.namespaces -}}{{- fail "config.edgeGateway.provider: watch.namespaces belongs to type Namespaces" -}}{{- end -}}
{{- if not (hasKey $watch "namespaceSelector") -}}{{- fail "config.edgeGateway.provider: watch.namespaceSelector is required with type NamespaceSelector" -}}{{- end -}}
{{- end -}}
{{- dict "namespaces" $list | toYaml -}}
{{- end -}}

{{/* "true" with deploy.type GatewayNamespace. */}}
{{- define "edge.ownNamespace" -}}
{{- $deploy := (include "edge.cluster" . | fromYaml).deploy | default dict -}}
{{- if eq (default "" $deploy.type) "GatewayNamespace" -}}true{{- end -}}
{{- end -}}
