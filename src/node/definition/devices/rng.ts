/** A source of entropy, where the spec asks for one. */
import type { Devices } from '#api/domain/devices.ts';
import { fixedAddress } from '#node/definition/addresses/layout-q35.ts';
import type { RngDevice } from '#node/definition/domain-definition.ts';

export function defineRng({ rng }: Devices): RngDevice[] {
  return rng === undefined ? [] : [{ type: 'rng', id: 'rng0', address: fixedAddress('rng0') }];
}
