/**
 * The status of identity records: how each VM ran last, so that its next start puts every device where it was. It reads
 * what the node agent reported in the instance's status; the spec of a record is controllers/vm's.
 */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { decideDeviceMap, type DeviceMapWorld } from '#controllers/device-map/decide-device-map.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { timestamp } from '#lib/clock.ts';
import { type ControllerDefinition, defineController, source, startController } from '#runtime/controller.ts';

const CONCURRENCY = 5;

export const deviceMapController: PlaneController = {
  account: 'device-map-controller',
  eventSource: 'device-map-controller',
  start: (parts) => [startController(definition(parts), parts)],
};

function definition({ informer, clock }: ControllerParts): ControllerDefinition<DeviceMapWorld> {
  const identities = informer(VIRTUAL_MACHINE_IDENTITIES);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const vms = informer(VIRTUAL_MACHINES);
  return defineController<DeviceMapWorld>({
    name: 'device-map-controller',
    type: VIRTUAL_MACHINE_IDENTITIES,
    concurrency: CONCURRENCY,
    sources: [
      source(identities),
      // An instance has the name of its VM, and so has the record.
      source(vmis),
      // Looked up only: what the template says counts when the instance reports.
      source(vms, () => []),
    ],
    observe(key) {
      const identity = identities.get(key);
      if (identity === undefined) return undefined;
      return { identity, vm: vms.get(key), vmi: vmis.get(key), now: timestamp(clock.now()) };
    },
    decide: decideDeviceMap,
    subject: ({ identity }) => identity,
  });
}
