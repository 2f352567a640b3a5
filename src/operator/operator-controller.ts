/**
 * The operator: keeps our definitions, roles, policies, webhook configurations and classes in place. What somebody
 * changes or deletes is put right again; labels and annotations of others stay, and so do settings.
 *
 *   definitions ──► Established ──► everything else, and the status of the KubeVirt object
 *
 * Its own account and rights must be there before: bootstrap.ts.
 */
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { definitionsController, definitionsEstablished } from '#operator/definitions-controller.ts';
import { installationController } from '#operator/installation-controller.ts';
import { DEFINITIONS } from '#operator/kinds.ts';
import { startLate } from '#operator/late-controller.ts';
import { startController, type RunningController } from '#runtime/controller.ts';

export const OPERATOR_ACCOUNT = 'selfsame-operator';

export const operatorController = {
  account: OPERATOR_ACCOUNT,
  eventSource: OPERATOR_ACCOUNT,
  start(parts: ControllerParts): readonly RunningController[] {
    const present = parts.informer(DEFINITIONS);
    return [
      startController(definitionsController(present), parts),
      startLate('operator', served(parts), () => startController(installationController(parts), parts)),
    ];
  },
};

/** True as soon as all of our kinds are served, false when `signal` was aborted before: then may others watch them. */
export function served({ informer, signal }: Pick<ControllerParts, 'informer' | 'signal'>): Promise<boolean> {
  const present = informer(DEFINITIONS);
  return present.until(() => definitionsEstablished(present), { signal });
}
