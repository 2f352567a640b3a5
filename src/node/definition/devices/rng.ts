/** A source of entropy, where the spec asks for one. */
import type { Devices } from '#api/domain/devices.ts';
import type { Unplaced } from '#node/definition/addresses/unplaced.ts';
import type { RngDevice } from '#node/definition/domain-definition.ts';

export function defineRng({ rng }: Devices): Unplaced<RngDevice>[] {
  return rng === undefined ? [] : [{ device: { type: 'rng', id: 'rng0' }, field: 'spec.domain.devices.rng' }];
}
