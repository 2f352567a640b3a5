/**
 * Refuses new pods that name a RuntimeClass or an overhead: an overhead comes only from a RuntimeClass, and the engine has
 * no such kind. Kubernetes' RuntimeClass plugin.
 */
import type { ValidatingStep } from '#engine/admission/admission.ts';
import { refuse } from '#engine/admission/admission.ts';
import { isRecord } from '#kube/meta.ts';

export const runtimeClassValidation: ValidatingStep = (attributes) => {
  const { operation, resource, subresource, object } = attributes;
  if (operation !== 'CREATE' || resource.collection !== 'pods' || subresource !== '') return;
  const { runtimeClassName, overhead } = isRecord(object?.['spec']) ? object['spec'] : {};
  if (typeof runtimeClassName === 'string') {
    throw refuse(attributes, `pod rejected: RuntimeClass ${JSON.stringify(runtimeClassName)} not found`);
  }
  if (overhead === undefined) return;
  throw refuse(attributes, 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead');
};
