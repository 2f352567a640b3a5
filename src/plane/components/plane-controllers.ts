/** Starts all our controllers on any API server, the operator first, each with its own account. */
import type { Client } from '#client/client.ts';
import { DEVICE_MAP, deviceMapController } from '#controllers/device-map/device-map.ts';
import type { HostReader } from '#controllers/device-map/host-reader.ts';
import { migrationController } from '#controllers/migration/migration-controller.ts';
import { networkAddressController } from '#controllers/network-address/network-address-controller.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import { protectionController } from '#controllers/protection/protection-controller.ts';
import { restoreController } from '#controllers/restore/restore-controller.ts';
import { snapshotController } from '#controllers/snapshot/snapshot-controller.ts';
import { storageController } from '#controllers/storage/storage-controller.ts';
import { vmController } from '#controllers/vm/vm-controller.ts';
import { vmiController } from '#controllers/vmi/vmi-controller.ts';
import { volumeSnapshotController } from '#controllers/volume-snapshot/volume-snapshot-controller.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { operatorController, waitUntilServed, waitForUuidAdmission } from '#operator/operator-controller.ts';
import type { Trust } from '#operator/trust.ts';
import { createHostReader } from '#plane/components/host-reader.ts';
import type { RunningController } from '#runtime/controller.ts';
import { EventRecorder } from '#runtime/events.ts';
import type { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import type { SharedInformers } from '#runtime/shared-informers.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';

/** Lists all controllers besides the operator. */
const createControllers = (hosts: HostReader): readonly PlaneController[] => [
  vmController,
  vmiController,
  networkAddressController,
  migrationController,
  deviceMapController(hosts),
  storageController,
  volumeSnapshotController,
  snapshotController,
  restoreController,
  protectionController,
];

interface PlaneControllerParts {
  clientOf(account: string): Client;
  readonly informers: SharedInformers;
  /** Creates the connections of the device map to node agents, with a client of its account. */
  hosts(client: Client): Pick<NodeConnections, 'post'>;
  /** The authorities of our services' certificates; absent if the services run in the process of the API server. */
  readonly trust?: Trust | undefined;
  readonly metrics: MetricRegistry;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called for each controller that was started. */
  onStarted(controller: RunningController): void;
}

interface StartSteps {
  /** Called when our kinds are served. */
  whenServed?(): void;
  /** Called before any controller besides the operator starts; they wait for it. */
  beforeControllers?(): Promise<void>;
}

/** Resolves when our kinds are served and all caches are filled, or when the signal aborts. */
export async function startPlaneControllers(
  parts: PlaneControllerParts,
  { whenServed, beforeControllers }: StartSteps = {},
): Promise<void> {
  const { clientOf, informers, metrics, clock, log, signal, onStarted } = parts;
  const informer: SharedInformers['of'] = (type) => informers.of(type);
  const start = ({ account, eventSource, start: run }: PlaneController): void => {
    const client = clientOf(account);
    const events = new EventRecorder({ writer: client, clock, log, component: eventSource, signal });
    for (const one of run({ client, informer, clock, log, events, metrics, signal })) onStarted(one);
  };
  start(operatorController(parts.trust));
  if (!(await waitUntilServed({ informer, signal }))) return;
  whenServed?.();
  // Without the webhook, the VM controller could mistake a new VM for one of an older version.
  if (!(await waitForUuidAdmission({ informer, signal }))) return;
  await beforeControllers?.();
  const hosts = createHostReader(parts.hosts(clientOf(DEVICE_MAP)), metrics);
  for (const controller of createControllers(hosts)) start(controller);
  await informers.waitForSync();
}
