/**
 * Our own parts beside an engine in the same process: webhook, subresources, operator and controllers, each an ordinary
 * client under its own account. On a cluster the very same parts run behind HTTPS.
 *
 *   bootstrap (as an administrator would) ─► services ─► operator ─► our kinds are served ─► controllers
 */
import { reviewAdmission } from '#admission/review-admission.ts';
import type { Lookup } from '#admission/validate.ts';
import { PROTECTED_SELECTOR } from '#api/delete-protection.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { BY_FIRMWARE_UUID, firmwareUuidOf } from '#api/firmware-uuid-index.ts';
import { KUBEVIRTS, type KubeVirt } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_RESTORES, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { createClient } from '#client/rest-client.ts';
import { DEVICE_MAP, deviceMapController } from '#controllers/device-map/device-map.ts';
import type { HostReader } from '#controllers/device-map/host-reader.ts';
import { migrationController } from '#controllers/migration/migration-controller.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
import { protectionController } from '#controllers/protection/protection-controller.ts';
import { restoreController } from '#controllers/restore/restore-controller.ts';
import { snapshotController } from '#controllers/snapshot/snapshot-controller.ts';
import { storageController } from '#controllers/storage/storage.ts';
import { UNFINISHED_BY_VM, unfinishedRestoreOf } from '#controllers/vm/lock.ts';
import { vmController } from '#controllers/vm/vm-controller.ts';
import { vmiController } from '#controllers/vmi/vmi-controller.ts';
import { volumeSnapshotController } from '#controllers/volume-snapshot/volume-snapshot-controller.ts';
import { AUTHENTICATED, MASTERS } from '#engine/auth/groups.ts';
import { serviceAccountUser } from '#engine/auth/service-accounts/user.ts';
import type { ApiHandler, UserInfo } from '#engine/request.ts';
import type { LocalServices } from '#engine/services.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';
import type { Log } from '#lib/log.ts';
import { applyBootstrap, INFORMERS_ACCOUNT } from '#operator/bootstrap.ts';
import { SUBRESOURCES_SERVICE } from '#operator/objects/api-services.ts';
import { WEBHOOK_SERVICE } from '#operator/objects/webhooks.ts';
import { operatorController, served } from '#operator/operator-controller.ts';
import { createHostReader } from '#plane/host-reader.ts';
import { evacuationMark, migrationLookup } from '#plane/migration-lookup.ts';
import type { RunningController } from '#runtime/controller.ts';
import { EventRecorder } from '#runtime/events.ts';
import { Metrics } from '#runtime/metrics.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';
import { createSubresourcesApi } from '#subresources/subresources-api.ts';

export interface OwnPartsOptions {
  readonly handler: ApiHandler;
  readonly services: LocalServices;
  /** How the subresources reach the agents of nodes; gets a client of their account. */
  nodes(client: Client): NodeConnections;
  /** How the device map asks them for the devices of guests; gets a client of its account. */
  hosts(client: Client): Pick<NodeConnections, 'post'>;
  readonly clock: Clock;
  readonly log: Log;
}

export interface OwnParts {
  readonly controllers: readonly RunningController[];
  stop(): Promise<void>;
}

/** Every controller of ours, in one list. */
const CONTROLLERS = (hosts: HostReader): readonly PlaneController[] => [
  vmController,
  vmiController,
  migrationController,
  deviceMapController(hosts),
  storageController,
  volumeSnapshotController,
  snapshotController,
  restoreController,
  protectionController,
];

const DEPLOY_WAIT_MS = 20_000;

/** Who may do everything; used once, for what the operator stands on. */
const ADMINISTRATOR: UserInfo = { name: 'selfsame-installer', groups: [MASTERS, AUTHENTICATED] };

/** Resolves when our kinds are served and everything watches them. */
export async function startOwnParts(options: OwnPartsOptions): Promise<OwnParts> {
  const { services, clock, log } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const informers = new SharedInformers({ reader: accountClient(options, INFORMERS_ACCOUNT), clock, log, signal });
  const informer: SharedInformers['of'] = (type) => informers.of(type);
  const metrics = new Metrics();
  const start = ({ account, eventSource, start: run }: PlaneController): readonly RunningController[] => {
    const client = accountClient(options, account);
    const events = new EventRecorder({ writer: client, clock, log, component: eventSource, signal });
    return run({ client, informer, clock, log, events, metrics, signal });
  };

  const controllers: RunningController[] = [];
  const leave: (() => void)[] = [];
  const stop = async () => {
    stopping.abort();
    for (const end of leave) end();
    await Promise.all([...controllers.map(({ stopped }) => stopped), informers.stopped()]);
  };
  try {
    await applyBootstrap(clientOf(options, ADMINISTRATOR));
    leave.push(services.addMetrics(() => metrics.text()));
    // The webhook answers before its configuration is there, and goes on without the settings until they are.
    const known: { now?: Known } = {};
    leave.push(services.register(SYSTEM_NAMESPACE, WEBHOOK_SERVICE, webhook(options, known)));
    leave.push(services.register(SYSTEM_NAMESPACE, SUBRESOURCES_SERVICE, { api: subresources(options) }));
    controllers.push(...start(operatorController));
    await served({ informer, signal });
    known.now = knownTo(informer);
    const hosts = createHostReader(options.hosts(accountClient(options, DEVICE_MAP)), metrics);
    for (const controller of CONTROLLERS(hosts)) controllers.push(...start(controller));
    await informers.synced();
    await deployed(known.now.kubevirts, options, signal);
    return { controllers, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Whoever is told that we are ready finds everything; what cannot be put in place is told in the KubeVirt object. */
async function deployed(
  settings: Informer<KubeVirt>,
  { clock, log }: OwnPartsOptions,
  signal: AbortSignal,
): Promise<void> {
  const late = new AbortController();
  const cancel = clock.after(DEPLOY_WAIT_MS, () => late.abort());
  const isDeployed = () => settings.list().some(({ status }) => status?.phase === 'Deployed');
  const done = await settings.until(isDeployed, { signal: AbortSignal.any([signal, late.signal]) });
  cancel();
  if (!done && !signal.aborted) log.warn({}, 'Not everything is installed yet; kubectl describe kubevirt -A tells why');
}

/** What the webhook looks up. */
interface Known {
  readonly kubevirts: Informer<KubeVirt>;
  readonly vms: Informer<VirtualMachine>;
  readonly restores: Informer<VirtualMachineRestore>;
}

function knownTo(informer: SharedInformers['of']): Known {
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

function webhook(options: OwnPartsOptions, known: { readonly now?: Known }) {
  const client = accountClient(options, WEBHOOK_SERVICE);
  const lookup: Lookup = {
    configuration: () => configurationOf(known.now?.kubevirts.get(`${SYSTEM_NAMESPACE}/${KUBEVIRT_NAME}`)),
    kubevirts: () => (known.now?.kubevirts.list() ?? []).map((object) => objectKey(object)),
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
  const parts = { lookup, markForEvacuation, newUuid: newUid, now: () => timestamp(options.clock.now()) };
  return { review: (path: string, review: unknown) => reviewAdmission(path, review, parts) };
}

function subresources(options: OwnPartsOptions): ApiHandler {
  const { clock, log } = options;
  const client = accountClient(options, SUBRESOURCES_SERVICE);
  return createSubresourcesApi({ client, nodes: options.nodes(client), clock, log });
}

function accountClient(options: OwnPartsOptions, account: string): Client {
  return clientOf(options, serviceAccountUser(SYSTEM_NAMESPACE, { name: account, uid: '' }), account);
}

/** Each part owns the fields that it writes under a name of its own. */
function clientOf({ handler }: OwnPartsOptions, user: UserInfo, userAgent = 'selfsame'): Client {
  return createClient(createInProcessTransport({ handler, user, userAgent }));
}
