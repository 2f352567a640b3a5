/**
 * Creates our webhook, which is served in this process or over HTTPS, with its caches, its own account, live reads and
 * its only write.
 */
import { reviewAdmission } from '#admission/review-admission.ts';
import type { AdmissionLookup } from '#admission/validate.ts';
import { PROTECTED_SELECTOR } from '#api/protection/delete-protection.ts';
import { BY_FIRMWARE_UUID, firmwareUuidOf } from '#api/identity/firmware-uuid-index.ts';
import { BY_MAC_ADDRESS, macAddressesOf } from '#api/identity/mac-address-index.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS, type KubeVirt } from '#api/kubevirt/kind.ts';
import { DEFAULT_NETWORK, GUEST_NETWORKS, type GuestNetwork } from '#api/network/guest-network.ts';
import { NETWORK_ADDRESSES, type NetworkAddress } from '#api/network/network-address.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE, VMI_NAME_LABEL } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import {
  isRestoreFinished,
  VIRTUAL_MACHINE_RESTORES,
  type VirtualMachineRestore,
} from '#api/virtual-machine-restore/kind.ts';
import { claimNamesOf } from '#api/storage/claim-names.ts';
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { claimKeysOfVm, VMS_BY_CLAIM } from '#controllers/shared/indexes/claim-keys.ts';
import { UNFINISHED_BY_VM, vmKeysOfUnfinishedRestore } from '#controllers/shared/indexes/unfinished-by-vm.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';
import type { SharedInformers } from '#runtime/shared-informers.ts';
import type { EvictionParts } from '#admission/pod-evictions.ts';
import { isFinalPhase, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import { listAll } from '#client/paged-list.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PODS, type Node, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { labelValueErrors } from '#kube/names.ts';

/** The caches of the webhook. */
export interface WebhookCaches {
  readonly kubevirts: Informer<KubeVirt>;
  readonly vms: Informer<VirtualMachine>;
  readonly restores: Informer<VirtualMachineRestore>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly nodes: Informer<Node>;
  readonly networks: Informer<GuestNetwork>;
  readonly addresses: Informer<NetworkAddress>;
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
  vms.addIndex(BY_MAC_ADDRESS, macAddressesOf);
  vms.addIndex(VMS_BY_CLAIM, claimKeysOfVm);
  restores.addIndex(UNFINISHED_BY_VM, vmKeysOfUnfinishedRestore);
  return {
    ...{ kubevirts, vms, restores, claims: informer(PERSISTENT_VOLUME_CLAIMS), nodes: informer(NODES) },
    ...{ networks: informer(GUEST_NETWORKS), addresses: informer(NETWORK_ADDRESSES) },
  };
}

/** Returns the VMs with the claim as a disk, and the VM that controls it. */
function findVmsOfClaim(vms: Informer<VirtualMachine>, claim: KubeObject): Stored<VirtualMachine>[] {
  const { namespace, name = '', ownerReferences = [] } = claim.metadata;
  const users = vms.byIndex(VMS_BY_CLAIM, keyOf({ namespace, name }));
  const owners = ownerReferences.flatMap((owner) => {
    const vm = owner.controller === true ? vms.get(keyOf({ namespace, name: owner.name })) : undefined;
    return vm === undefined || vm.metadata.uid !== owner.uid ? [] : [vm];
  });
  return [...new Set([...users, ...owners])];
}

interface WebhookOptions {
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
    vmsWithMac: (mac) =>
      (caches.now?.vms.byIndex(BY_MAC_ADDRESS, mac) ?? []).map(({ metadata }) => ({
        namespace: metadata.namespace ?? '',
        name: metadata.name,
      })),
    guestNetwork: () => caches.now?.networks.get(DEFAULT_NETWORK),
    networkAddress: (name) => caches.now?.addresses.get(name),
    restoresOf: createRestoreLookup(client, () => caches.now?.restores),
    nodes: () => caches.now?.nodes.list() ?? [],
    vmsOfClaim: (claim) => (caches.now === undefined ? [] : findVmsOfClaim(caches.now.vms, claim)),
    claimsOfVm: ({ metadata: { namespace }, spec }) =>
      claimNamesOf(spec.template.spec ?? {}).flatMap(
        (name) => caches.now?.claims.get(keyOf({ namespace, name })) ?? [],
      ),
    protectedVms: async (query) =>
      (await client.list(VIRTUAL_MACHINES, { ...query, labelSelector: PROTECTED_SELECTOR })).items,
    ...createMigrationLookup(client),
  };
  const markForEvacuation = createEvacuationMarker(client);
  const parts = { lookup, markForEvacuation, newUuid: newUid, now: () => timestamp(clock.now()) };
  return { review: (path, review) => reviewAdmission(path, review, parts) };
}

/**
 * Returns the lookup of unfinished restores: from the cache, but a restore counts only if the API confirms that it is
 * unfinished. `restores` needs the index UNFINISHED_BY_VM.
 */
export function createRestoreLookup(
  client: Pick<Client, 'get'>,
  restores: () => Pick<Informer<VirtualMachineRestore>, 'byIndex'> | undefined,
): AdmissionLookup['restoresOf'] {
  return async (namespace, vmName) => {
    const cached = restores()?.byIndex(UNFINISHED_BY_VM, keyOf({ namespace, name: vmName })) ?? [];
    const live = await Promise.all(
      cached.map(({ metadata: { name } }) => getIfExists(client, VIRTUAL_MACHINE_RESTORES, { namespace, name })),
    );
    return live.flatMap((restore) => (restore === undefined || isRestoreFinished(restore) ? [] : [restore.metadata]));
  };
}

type MigrationLookup = Pick<AdmissionLookup, 'pod' | 'instance' | 'activeMigrationsOf'>;

/** Returns the live reads about migrations. */
export function createMigrationLookup(client: Pick<Client, 'get' | 'list'>): MigrationLookup {
  return {
    pod: (namespace, name) => getIfExists(client, PODS, { namespace, name }),
    instance: (namespace, name) => getIfExists(client, VIRTUAL_MACHINE_INSTANCES, { namespace, name }),
    async activeMigrationsOf(namespace, vmiName) {
      // A name that is too long for a label is searched among all migrations (admission/mutate.ts).
      const few = labelValueErrors(vmiName).length === 0 ? { labelSelector: `${VMI_NAME_LABEL}=${vmiName}` } : {};
      const { items } = await listAll(client, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace, ...few });
      return items.filter(({ spec, status }) => spec.vmiName === vmiName && !isFinalPhase(status?.phase));
    },
  };
}

/** Returns a function that marks an instance for evacuation. It fails if the instance was replaced meanwhile. */
export function createEvacuationMarker(client: Pick<Client, 'patch'>): EvictionParts['markForEvacuation'] {
  return async ({ metadata: { namespace, name, uid } }, evacuationNodeName) => {
    const body = [
      { op: 'test', path: '/metadata/uid', value: uid },
      { op: 'add', path: '/status/evacuationNodeName', value: evacuationNodeName },
    ];
    const patch = { type: 'json' as const, body };
    await client.patch(VIRTUAL_MACHINE_INSTANCES, { namespace, name }, patch, { subresource: 'status' });
  };
}
