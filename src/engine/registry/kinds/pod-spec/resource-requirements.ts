/** The schemas of resource requests and limits. */
import { apiType, optional, required } from '#engine/registry/kinds/api-type.ts';
import { list, map, quantity, str } from '#kube/schema-dsl.ts';

const resourceClaim = apiType('core.v1.ResourceClaim', 'A reference to a resource claim of the pod.', {
  name: required(1, str(), "Name of an entry in the pod's resourceClaims."),
  request: optional(2, str(), 'Name of one request of the claim. Empty means all requests.'),
});

export const resourceRequirements = apiType('core.v1.ResourceRequirements', 'Compute resource requirements.', {
  limits: optional(1, map(quantity()), 'Maximum amount of each compute resource.'),
  requests: optional(2, map(quantity()), 'Minimum amount of each compute resource.'),
  claims: optional(
    3,
    list(resourceClaim, { mapKeys: ['name'] }),
    'Resource claims of the pod that the container uses.',
  ),
});

export const volumeResourceRequirements = apiType(
  'core.v1.VolumeResourceRequirements',
  'Storage resource requirements of a volume.',
  {
    limits: optional(1, map(quantity()), 'Maximum amount of each resource.'),
    requests: optional(2, map(quantity()), 'Minimum amount of each resource.'),
  },
);
