/** The memory balloon, unless the spec refuses it. */
import type { Devices } from '#api/domain/devices.ts';
import type { Unplaced } from '#node/definition/addresses/unplaced.ts';
import type { BalloonDevice } from '#node/definition/domain-definition.ts';

export function defineBalloon({ autoattachMemBalloon }: Devices): Unplaced<BalloonDevice>[] {
  if (autoattachMemBalloon === false) return [];
  return [{ device: { type: 'balloon', id: 'balloon0' }, field: 'spec.domain.devices.autoattachMemBalloon' }];
}
