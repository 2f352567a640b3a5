/** The schemas of resource requests and limits. */
import { list, map, obj, quantity, str } from '#kube/schema-dsl.ts';

export const resourceClaim = obj(
  {
    name: str(),
    request: str(),
  },
  { required: ['name'] },
);

export const resourceRequirements = obj({
  claims: list(resourceClaim, { mapKeys: ['name'] }),
  limits: map(quantity()),
  requests: map(quantity()),
});

export const volumeResourceRequirements = obj({
  limits: map(quantity()),
  requests: map(quantity()),
});
