/**
 * The operator: keeps our definitions, roles, policies, webhook configurations and classes in place. What somebody
 * changes or deletes is put right again; labels and annotations of others stay, and so do settings.
 *
 *   definitions ──► Established ──► everything else, and the status of the KubeVirt object
 *
 * Its own account and rights must be there before: bootstrap.ts.
 */
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { definitionsController, definitionsEstablished } from '#operator/definitions-controller.ts';
import { installationController } from '#operator/installation-controller.ts';
import { DEFINITIONS } from '#operator/kinds.ts';
import { startLate } from '#operator/late-controller.ts';
import { startController, type RunningController } from '#runtime/controller.ts';
import type { EventSink } from '#runtime/events.ts';

export const OPERATOR_ACCOUNT = 'selfsame-operator';

/** The same as the parts of every controller of ours (controllers/plane-controller.ts), which is not ours to see. */
export interface OperatorParts {
  readonly client: Client;
  informer<T extends KubeObject>(type: ResourceType<T>): Informer<T>;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventSink;
  readonly signal: AbortSignal;
}

export const operatorController = {
  account: OPERATOR_ACCOUNT,
  eventSource: OPERATOR_ACCOUNT,
  start(parts: OperatorParts): readonly RunningController[] {
    const present = parts.informer(DEFINITIONS);
    return [
      startController(definitionsController(present), parts),
      startLate('operator', served(parts), () => startController(installationController(parts), parts)),
    ];
  },
};

/** True as soon as all of our kinds are served, false when `signal` was aborted before: then may others watch them. */
export function served({ informer, signal }: Pick<OperatorParts, 'informer' | 'signal'>): Promise<boolean> {
  const present = informer(DEFINITIONS);
  return present.until(() => definitionsEstablished(present), { signal });
}
