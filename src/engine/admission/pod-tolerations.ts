/** Lets pods tolerate a lost node for five minutes by default. Kubernetes' DefaultTolerationSeconds. */
import type { MutatingStep } from '#engine/admission/admission.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { isRecord } from '#kube/meta.ts';

const KEYS = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'] as const;
const EFFECT = 'NoExecute';
const TOLERATION_SECONDS = 300;

export const tolerateLostNodes: MutatingStep = ({ operation, resource, subresource, object }) => {
  if (operation !== 'CREATE' && operation !== 'UPDATE') return;
  if (resource.collection !== 'pods' || subresource !== '' || !isRecord(object?.['spec'])) return;
  const spec = object['spec'] as EnginePodSpec;
  for (const key of KEYS) {
    const tolerations = records(spec.tolerations);
    const covered = tolerations.some((one) => (!one.key || one.key === key) && (!one.effect || one.effect === EFFECT));
    if (covered) continue;
    const added = { key, operator: 'Exists' as const, effect: EFFECT, tolerationSeconds: TOLERATION_SECONDS } as const;
    spec.tolerations = [...tolerations, added];
  }
};
