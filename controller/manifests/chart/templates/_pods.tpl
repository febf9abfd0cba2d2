{{/* What the controller's pods and the certgen Job's share; objects.py and workload.py are the same in Python. */}}

{{- define "edge.podSecurity" -}}
fsGroup: 65532
runAsGroup: 65532
runAsNonRoot: true
runAsUser: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "edge.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: ["ALL"]
readOnlyRootFilesystem: true
{{- end -}}

{{- define "edge.environment" -}}
{{- range $name, $path := dict "POD_IP" "status.podIP" "POD_NAME" "metadata.name" "POD_NAMESPACE" "metadata.namespace" }}
- name: {{ $name }}
  valueFrom:
    fieldRef:
      apiVersion: v1
      fieldPath: {{ $path }}
{{- end }}
{{- with .Values.deployment.edgeGateway.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "edge.nodes" -}}
{{- with .Values.deployment.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.deployment.pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.deployment.pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
