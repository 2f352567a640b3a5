/** Our webhook as whoever serves it has it, in this process or over HTTPS: what it looks up, and as whom. */
import { reviewAdmission } from '#admission/review-admission.ts';
import type { Lookup } from '#admission/validate.ts';
import { PROTECTED_SELECTOR } from '#api/delete-protection.ts';
import { BY_FIRMWARE_UUID, firmwareUuidOf } from '#api/firmware-uuid-index.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS, type KubeVirt } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_RESTORES, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { UNFINISHED_BY_VM, unfinishedRestoreOf } from '#controllers/vm/lock.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';
import { evacuationMark, migrationLookup } from '#plane/migration-lookup.ts';
import type { SharedInformers } from '#runtime/shared-informers.ts';

/** What the webhook finds in caches. */
export interface Known {
  readonly kubevirts: Informer<KubeVirt>;
  readonly vms: Informer<VirtualMachine>;
  readonly restores: Informer<VirtualMachineRestore>;
}

/** Only where our kinds are served. */
export function knownTo(informer: SharedInformers['of']): Known {
  const [kubevirts, vms, restores] = [
    informer(KUBEVIRTS),
    informer(VIRTUAL_MACHINES),
    informer(VIRTUAL_MACHINE_RESTORES),
  ];
  vms.addIndex(BY_FIRMWARE_UUID, (vm) => {
    const uuid = firmwareUuidOf(vm);
    return uuid === undefined ? [] : [uuid];
  });
  restores.addIndex(UNFINISHED_BY_VM, unfinishedRestoreOf);
  return { kubevirts, vms, restores };
}

export interface WebhookParts {
  /** Under its own account. */
  readonly client: Client;
  /** It answers before its configuration is there, and goes on without the settings until they are. */
  readonly known: { readonly now?: Known };
  readonly clock: Clock;
}

export interface Webhook {
  /** An AdmissionReview in, one out; throws ApiError for what is none. */
  review(path: string, review: unknown): Promise<unknown>;
}

export function createWebhook({ client, known, clock }: WebhookParts): Webhook {
  const lookup: Lookup = {
    configuration: () => configurationOf(known.now?.kubevirts.get(`${SYSTEM_NAMESPACE}/${KUBEVIRT_NAME}`)),
    vmsWithUuid: (uuid) =>
      (known.now?.vms.byIndex(BY_FIRMWARE_UUID, uuid.toLowerCase()) ?? []).map(({ metadata }) => ({
        namespace: metadata.namespace ?? '',
        name: metadata.name,
      })),
    restoresOf: (namespace, name) =>
      (known.now?.restores.byIndex(UNFINISHED_BY_VM, keyOf({ namespace, name })) ?? []).map(({ metadata }) => metadata),
    protectedVms: async (query) =>
      (await client.list(VIRTUAL_MACHINES, { ...query, labelSelector: PROTECTED_SELECTOR })).items,
    ...migrationLookup(client),
  };
  const markForEvacuation = evacuationMark(client);
  const parts = { lookup, markForEvacuation, newUuid: newUid, now: () => timestamp(clock.now()) };
  return { review: (path, review) => reviewAdmission(path, review, parts) };
}
