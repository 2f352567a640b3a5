/**
 * Checks the right to update a VM. Verbs that change other objects for a VM, such as the owner of a claim, need it in
 * addition to the right to the subresource, which the API server has checked.
 */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import { forbidden } from '#kube/api-error.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#kube/meta.ts';
import type { SubresourceRequest } from '#subresources/http-types.ts';

interface SubjectAccessReview extends KubeObject {
  readonly spec: {
    readonly user: string;
    readonly groups: readonly string[];
    readonly resourceAttributes: Readonly<Record<'group' | 'resource' | 'verb' | 'namespace' | 'name', string>>;
  };
  readonly status?: { readonly allowed?: boolean };
}

const SUBJECT_ACCESS_REVIEWS: ResourceType<SubjectAccessReview> = {
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  namespaced: false,
};

interface VmTarget {
  readonly namespace: string;
  readonly name: string;
}

/** Throws 403 if the user may not update the VM. */
export async function requireVmUpdate(
  client: Pick<Client, 'create'>,
  { user, signal }: Pick<SubresourceRequest, 'user' | 'signal'>,
  { namespace, name }: VmTarget,
): Promise<void> {
  const { group, plural: resource } = VIRTUAL_MACHINES;
  const type = SUBJECT_ACCESS_REVIEWS;
  const review: SubjectAccessReview = {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: {},
    spec: {
      user: user.name,
      groups: user.groups,
      resourceAttributes: { group, resource, verb: 'update', namespace, name },
    },
  };
  const { status } = await client.create(type, review, { signal });
  if (status?.allowed === true) return;
  const why = `User "${user.name}" cannot update resource "${resource}" in API group "${group}" in the namespace "${namespace}"`;
  throw forbidden({ group, plural: resource }, name, why);
}
