/** Defines the memory balloon, unless the spec disables it. */
import type { Devices } from '#api/domain/devices.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import type { BalloonDevice } from '#node/hardware/domain-definition.ts';

export function defineBalloon({ autoattachMemBalloon }: Devices): UnplacedDevice<BalloonDevice>[] {
  if (autoattachMemBalloon === false) return [];
  return [{ device: { type: 'balloon', id: 'balloon0' }, field: 'spec.domain.devices.autoattachMemBalloon' }];
}
