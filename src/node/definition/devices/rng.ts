/** Defines a source of entropy if the spec asks for one. */
import type { Devices } from '#api/domain/devices.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import type { RngDevice } from '#node/hardware/domain-definition.ts';

export function defineRng({ rng }: Devices): UnplacedDevice<RngDevice>[] {
  return rng === undefined ? [] : [{ device: { type: 'rng', id: 'rng0' }, field: 'spec.domain.devices.rng' }];
}
