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

{{/* Namespaces whose pods no quarantine is about: the protected ones, and Seawall's own. */}}
{{- define "seawall.untouched" -}}
{{- append .Values.actor.protectedNamespaces .Release.Namespace | uniq | toJson }}
{{- end }}

{{/* As a list of CEL. */}}
{{- define "seawall.untouchedWords" -}}
['{{ include "seawall.untouched" . | fromJsonArray | join "', '" }}']
{{- end }}

{{/* What a quarantine's match means of a pod, as src/seawall/cluster/objects/match_objects.py has it: all that
     is given must agree.  `.pod` is the CEL of the pod. */}}
{{- define "seawall.podIsMatched" -}}
- name: match
  expression: dyn(params.spec.match)
- name: pod
  expression: dyn({{ .pod }})
- name: owners
  expression: "'ownerReferences' in variables.pod.metadata ? variables.pod.metadata.ownerReferences : []"
- name: name
  expression: >-
    'generateName' in variables.pod.metadata && variables.pod.metadata.generateName != '' ? variables.pod.metadata.generateName :
    ('name' in variables.pod.metadata ? variables.pod.metadata.name : '')
- name: account
  expression: >-
    'serviceAccountName' in variables.pod.spec && variables.pod.spec.serviceAccountName != '' ?
    variables.pod.spec.serviceAccountName : 'default'
- name: labels
  expression: "'labels' in variables.pod.metadata ? variables.pod.metadata.labels : {}"
{{- include "seawall.matchParts" . }}
- name: podIsMatched
  expression: >-
    variables.isNarrow && variables.match['namespace'] == request.namespace &&
    (variables.uids.size() == 0 || variables.owners.exists(o, o.uid in variables.uids) ||
    ('uid' in variables.pod.metadata && variables.pod.metadata.uid in variables.uids)) &&
    variables.name.startsWith(variables.prefix) &&
    (variables.serviceAccount == '' || variables.account == variables.serviceAccount) &&
    variables.images.all(i, variables.pod.spec.containers.exists(c, 'image' in c && c.image == i)) &&
    variables.wanted.all(k, k in variables.labels && variables.labels[k] == variables.wanted[k])
{{- end }}

{{/* The parts of a match; what is absent is empty.  A namespace alone is no match, nor with everybody's account. */}}
{{- define "seawall.matchParts" }}
- name: uids
  expression: "'ownerUIDs' in variables.match ? variables.match.ownerUIDs : []"
- name: prefix
  expression: "'generateNamePrefix' in variables.match ? variables.match.generateNamePrefix : ''"
- name: serviceAccount
  expression: "'serviceAccount' in variables.match ? variables.match.serviceAccount : ''"
- name: images
  expression: "'images' in variables.match ? variables.match.images : []"
- name: wanted
  expression: "'labels' in variables.match ? variables.match.labels : {}"
- name: isNarrow
  expression: >-
    variables.uids.size() > 0 || variables.prefix != '' || !(variables.serviceAccount in ['', 'default']) ||
    variables.images.size() > 0 || variables.wanted.size() > 0
{{- end }}
