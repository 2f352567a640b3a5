/** Writes the status of ResourceQuotas: the enforced limits and their use. Admission enforces them (admission/limits/). */
import type { Amounts } from '#engine/registry/kinds/pod-spec/pod-amounts.ts';
import type { QuotaCounts } from '#engine/admission/limits/quota-counts.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { type ResourceQuota, RESOURCE_QUOTAS } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { formatQuantity } from '#kube/quantity.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { noEvents } from '#runtime/events.ts';
import type { Plan } from '#runtime/plan.ts';

interface QuotaWorld {
  readonly quota: Stored<ResourceQuota>;
  readonly used: Amounts;
  readonly changesAtMs: number | undefined;
  readonly nowMs: number;
}

/** Computes the status of one quota. Pure. */
function decideQuota({ quota, used, changesAtMs, nowMs }: QuotaWorld): Plan {
  const { hard = {} } = quota.spec ?? {};
  const texts = Object.fromEntries([...used].map(([name, amount]) => [name, formatQuantity(amount)]));
  return {
    status: Object.keys(hard).length === 0 ? {} : { hard, used: texts },
    changes: [],
    ...(changesAtMs === undefined ? {} : { requeueAfterMs: Math.max(changesAtMs - nowMs, 0) + 1000 }),
  };
}

export function resourceQuotaController({ counts }: { readonly counts: QuotaCounts }): EngineController {
  return {
    account: 'resourcequota-controller',
    start(parts) {
      const quotas = parts.informer(RESOURCE_QUOTAS);
      const controller = defineController<QuotaWorld>({
        name: 'resource-quota',
        type: RESOURCE_QUOTAS,
        sources: [source(quotas), { cache: quotas, subscribe: (add) => counts.follow(add) }],
        async observe(key) {
          const quota = quotas.get(key);
          if (quota === undefined) return undefined;
          const nowMs = parts.clock.now();
          return { quota, nowMs, ...(await counts.count(quota, nowMs)) };
        },
        decide: decideQuota,
        subject: ({ quota }) => quota,
      });
      return startController(controller, { ...parts, events: noEvents });
    },
  };
}
