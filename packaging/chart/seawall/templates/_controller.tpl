{{/* Deployment of a part that watches the cluster: the observer or the actor.  `.part`, `.flag`, `.root`. */}}
{{- define "seawall.controller" -}}
{{- $own := index .root.Values .part }}
{{- $name := printf "seawall-%s" .part }}
{{- $affinity := $own.affinity -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "seawall.labels" $name | nindent 4 }}
spec:
  replicas: {{ $own.replicas }}
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ $name }}
  strategy:
    type: RollingUpdate
    # A third one would find no node where there are two.
    rollingUpdate:
      maxSurge: 0
      maxUnavailable: 1
  template:
    metadata:
      labels:
        {{- include "seawall.labels" $name | nindent 8 }}
    spec:
      serviceAccountName: {{ $name }}
      automountServiceAccountToken: true
      {{- include "seawall.pullSecrets" .root | nindent 6 }}
      priorityClassName: system-cluster-critical
      enableServiceLinks: false
      terminationGracePeriodSeconds: 10
      {{- with $own.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      nodeSelector:
        kubernetes.io/os: linux
        {{- with $own.nodeSelector }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      affinity:
        {{- with $affinity.nodeAffinity }}
        nodeAffinity:
          {{- toYaml . | nindent 10 }}
        {{- else }}
        {{- with $own.keepOff }}
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions:
                  {{- toYaml . | nindent 18 }}
        {{- end }}
        {{- end }}
        {{- with $affinity.podAffinity }}
        podAffinity:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- with $affinity.podAntiAffinity }}
        podAntiAffinity:
          {{- toYaml . | nindent 10 }}
        {{- else }}
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  app.kubernetes.io/name: {{ $name }}
        {{- end }}
      containers:
        - name: {{ .part }}
          image: {{ include "seawall.image" .root | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          command: [seawall, cluster, controller{{ with .flag }}, {{ . }}{{ end }}, --metrics-address, "[$(POD_IP)]:{{ $own.metricsPort }}"]
          env:
            - name: POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            - name: POD_NAMESPACE
              valueFrom:
                fieldRef:
                  fieldPath: metadata.namespace
            - name: POD_IP
              valueFrom:
                fieldRef:
                  fieldPath: status.podIP
          ports:
            - name: metrics
              containerPort: {{ $own.metricsPort }}
          securityContext:
            runAsNonRoot: true
            runAsUser: 65532
            runAsGroup: 65532
            readOnlyRootFilesystem: true
            allowPrivilegeEscalation: false
            capabilities:
              drop: [ALL]
            seccompProfile:
              type: RuntimeDefault
          # No liveness probe: who cannot reach the API server is not mended by a restart.
          readinessProbe:
            httpGet:
              path: /healthz
              port: metrics
            periodSeconds: 10
            timeoutSeconds: 5
          resources:
            {{- toYaml $own.resources | nindent 12 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "seawall.labels" $name | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ $name }}
{{- end }}
