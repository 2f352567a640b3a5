/** The schema of Service. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { metaConditionSchema } from '#engine/registry/kinds/meta/condition.ts';
import type { KubeObject } from '#kube/meta.ts';
import { bool, type Infer, int32, intOrString, list, map, overrideOptions, oneOf, str } from '#kube/schema-dsl.ts';

const servicePort = apiType('core.v1.ServicePort', 'A port of a service.', {
  name: optional(1, str(), 'Name of the port. Must be unique in the service.'),
  protocol: optional(
    2,
    oneOf(['SCTP', 'TCP', 'UDP'], { default: 'TCP' }),
    'IP protocol of the port: TCP, UDP or SCTP.',
  ),
  appProtocol: pointer(6, str(), 'Application protocol of the port.'),
  port: required(3, int32(), 'Port of the service.'),
  targetPort: optional(4, intOrString(), 'Number or name of the port on the pods. Defaults to port.'),
  nodePort: optional(5, int32(), 'Port on each node. Requires type NodePort or LoadBalancer.'),
});

const clientIPConfig = apiType('core.v1.ClientIPConfig', 'Settings of ClientIP affinity.', {
  timeoutSeconds: pointer(1, int32(), 'Seconds for which a client stays with the same pod.'),
});

const sessionAffinityConfig = apiType('core.v1.SessionAffinityConfig', 'Settings of the session affinity.', {
  clientIP: pointer(1, clientIPConfig, 'Settings of ClientIP affinity.'),
});

const serviceSpec = apiType('core.v1.ServiceSpec', 'Desired behavior of a service.', {
  ports: optional(
    1,
    list(servicePort, { mergeKey: 'port', mapKeys: ['port', 'protocol'] }),
    'Ports that the service exposes.',
  ),
  selector: optional(2, map(str(), { atomic: true }), 'Labels of the pods that receive traffic.'),
  clusterIP: optional(3, str(), 'IP address of the service. None makes the service headless.'),
  clusterIPs: optional(18, list(str(), { atomic: true }), 'All IP addresses of the service.'),
  type: optional(
    4,
    oneOf(['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'], { default: 'ClusterIP' }),
    'How the service is exposed: ClusterIP, NodePort, LoadBalancer or ExternalName.',
  ),
  externalIPs: optional(
    5,
    list(str(), { atomic: true }),
    'External IP addresses for which nodes accept traffic of the service.',
  ),
  sessionAffinity: optional(7, oneOf(['ClientIP', 'None'], { default: 'None' }), 'Session affinity: ClientIP or None.'),
  loadBalancerIP: optional(8, str(), 'Deprecated.'),
  loadBalancerSourceRanges: optional(
    9,
    list(str(), { atomic: true }),
    'Client IP ranges that may use the load balancer.',
  ),
  externalName: optional(10, str(), 'Domain name that the service is an alias for. Requires type ExternalName.'),
  externalTrafficPolicy: optional(
    11,
    oneOf(['Cluster', 'Local']),
    'How nodes distribute traffic from outside the cluster: Cluster or Local.',
  ),
  healthCheckNodePort: optional(
    12,
    int32(),
    'Node port for health checks. Requires type LoadBalancer and externalTrafficPolicy Local.',
  ),
  publishNotReadyAddresses: optional(13, bool(), 'Whether addresses of pods that are not ready are published.'),
  sessionAffinityConfig: pointer(14, sessionAffinityConfig, 'Settings of the session affinity.'),
  ipFamilies: optional(19, list(oneOf(['IPv4', 'IPv6']), { atomic: true }), 'IP families of the service: IPv4, IPv6.'),
  ipFamilyPolicy: pointer(
    17,
    oneOf(['PreferDualStack', 'RequireDualStack', 'SingleStack']),
    'IP family policy: SingleStack, PreferDualStack or RequireDualStack.',
  ),
  allocateLoadBalancerNodePorts: pointer(
    20,
    bool(),
    'Whether node ports are allocated for a service of type LoadBalancer.',
  ),
  loadBalancerClass: pointer(21, str(), 'Class of the load balancer implementation.'),
  internalTrafficPolicy: pointer(
    22,
    oneOf(['Cluster', 'Local']),
    'How nodes distribute traffic from inside the cluster: Cluster or Local.',
  ),
  trafficDistribution: pointer(23, str(), 'Preference for how traffic is distributed to endpoints.'),
});

const portStatus = apiType('core.v1.PortStatus', 'The status of a port of a load balancer.', {
  port: required(1, int32(), 'Port number.'),
  protocol: required(2, str(), 'Protocol of the port.'),
  error: pointer(3, str(), 'Problem with the port.'),
});

const loadBalancerIngress = apiType('core.v1.LoadBalancerIngress', 'An ingress point of a load balancer.', {
  ip: optional(1, str(), 'IP address of the ingress point.'),
  hostname: optional(2, str(), 'Hostname of the ingress point.'),
  ipMode: pointer(3, str(), 'How the load balancer handles its IP: VIP or Proxy.'),
  ports: optional(4, list(portStatus, { atomic: true }), 'Ports of the ingress point.'),
});

const loadBalancerStatus = apiType('core.v1.LoadBalancerStatus', 'The status of a load balancer.', {
  ingress: optional(1, list(loadBalancerIngress, { atomic: true }), 'Ingress points of the load balancer.'),
});

const serviceStatus = apiType('core.v1.ServiceStatus', 'The most recently observed status of a service.', {
  loadBalancer: optional(
    1,
    overrideOptions(loadBalancerStatus, { default: {} }),
    'Current status of the load balancer.',
  ),
  conditions: optional(2, list(metaConditionSchema, { mergeKey: 'type' }), 'Current service state.'),
});

export const serviceSchema = apiType(
  'core.v1.Service',
  'A named abstraction of software that runs in pods: a port, and the selector of the pods that answer.',
  {
    spec: required(2, overrideOptions(serviceSpec, { default: {} }), 'Desired behavior of the service.'),
    status: optional(
      3,
      overrideOptions(serviceStatus, { default: {} }),
      'Most recently observed status of the service. Populated by the system. Read-only.',
    ),
  },
);

export type Service = KubeObject & Infer<typeof serviceSchema>;
export type ServiceSpec = Infer<typeof serviceSpec>;
export type ServicePortSpec = Infer<typeof servicePort>;
