{{/* One install in a cluster: the objects of a cluster have fixed names, and so have their accounts. */}}

{{- define "seawall.labels" -}}
app.kubernetes.io/name: {{ . }}
app.kubernetes.io/part-of: seawall
{{- end }}

{{/* registry/repository@digest where there is a digest, else :tag. */}}
{{- define "seawall.image" -}}
{{- $image := .Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end }}{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "seawall.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The node that a token was made for: of a pod's token since 1.30, of a node's since 1.32. */}}
{{- define "seawall.ownNode" -}}
- name: ownNode
  expression: >-
    has(request.userInfo.extra) && 'authentication.kubernetes.io/node-name' in request.userInfo.extra &&
    request.userInfo.extra['authentication.kubernetes.io/node-name'].size() == 1 ?
    request.userInfo.extra['authentication.kubernetes.io/node-name'][0] : ''
{{- end }}

{{/* Conditions that an agent writes on its node: True is trouble, as node-problem-detector has it. */}}
{{- define "seawall.conditions" -}}
- MemoryShort
- KernelMemoryUncounted
- MemoryLivelock
- GPUDeviceAccessDegraded
- DevicePluginStale
- SeawallGuardImpaired
- PoisonWorkloadPresent
{{- end }}
