/** The memory balloon, unless the spec refuses it. */
import type { Devices } from '#api/domain/devices.ts';
import { fixedAddress } from '#node/definition/addresses/layout-q35.ts';
import type { BalloonDevice } from '#node/definition/domain-definition.ts';

export function defineBalloon({ autoattachMemBalloon }: Devices): BalloonDevice[] {
  if (autoattachMemBalloon === false) return [];
  return [{ type: 'balloon', id: 'balloon0', address: fixedAddress('balloon0') }];
}
