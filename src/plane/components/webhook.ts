/** Creates our webhook, which is served in this process or over HTTPS, with its caches and its own account. */
import { reviewAdmission } from '#admission/review-admission.ts';
import type { AdmissionLookup } from '#admission/validate.ts';
import { PROTECTED_SELECTOR } from '#api/protection/delete-protection.ts';
import { BY_FIRMWARE_UUID, firmwareUuidOf } from '#api/identity/firmware-uuid-index.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS, type KubeVirt } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_RESTORES, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { UNFINISHED_BY_VM, vmKeysOfUnfinishedRestore } from '#controllers/shared/indexes/unfinished-by-vm.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';
import { createEvacuationMarker, createMigrationLookup } from '#plane/components/migration-lookup.ts';
import type { SharedInformers } from '#runtime/shared-informers.ts';

/** The caches of the webhook. */
export interface WebhookCaches {
  readonly kubevirts: Informer<KubeVirt>;
  readonly vms: Informer<VirtualMachine>;
  readonly restores: Informer<VirtualMachineRestore>;
}

/** Creates the caches. Must be called after our kinds are served. */
export function createWebhookCaches(informer: SharedInformers['of']): WebhookCaches {
  const [kubevirts, vms, restores] = [
    informer(KUBEVIRTS),
    informer(VIRTUAL_MACHINES),
    informer(VIRTUAL_MACHINE_RESTORES),
  ];
  vms.addIndex(BY_FIRMWARE_UUID, (vm) => {
    const uuid = firmwareUuidOf(vm);
    return uuid === undefined ? [] : [uuid];
  });
  restores.addIndex(UNFINISHED_BY_VM, vmKeysOfUnfinishedRestore);
  return { kubevirts, vms, restores };
}

export interface WebhookOptions {
  /** A client with the account of the webhook. */
  readonly client: Client;
  /** Set once the caches exist. Until then the webhook uses the default configuration. */
  readonly caches: { readonly now?: WebhookCaches };
  readonly clock: Clock;
}

export interface Webhook {
  /** Answers an AdmissionReview. Throws ApiError if it is not one. */
  review(path: string, review: unknown): Promise<unknown>;
}

export function createWebhook({ client, caches, clock }: WebhookOptions): Webhook {
  const lookup: AdmissionLookup = {
    configuration: () => configurationOf(caches.now?.kubevirts.get(`${SYSTEM_NAMESPACE}/${KUBEVIRT_NAME}`)),
    vmsWithUuid: (uuid) =>
      (caches.now?.vms.byIndex(BY_FIRMWARE_UUID, uuid.toLowerCase()) ?? []).map(({ metadata }) => ({
        namespace: metadata.namespace ?? '',
        name: metadata.name,
      })),
    restoresOf: (namespace, name) =>
      (caches.now?.restores.byIndex(UNFINISHED_BY_VM, keyOf({ namespace, name })) ?? []).map(
        ({ metadata }) => metadata,
      ),
    protectedVms: async (query) =>
      (await client.list(VIRTUAL_MACHINES, { ...query, labelSelector: PROTECTED_SELECTOR })).items,
    ...createMigrationLookup(client),
  };
  const markForEvacuation = createEvacuationMarker(client);
  const parts = { lookup, markForEvacuation, newUuid: newUid, now: () => timestamp(clock.now()) };
  return { review: (path, review) => reviewAdmission(path, review, parts) };
}
