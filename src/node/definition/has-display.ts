/** Whether there is something to look at: a card of ours, or one that came with an imported machine. Pure. */
import type { DomainDefinition } from '#node/definition/domain-definition.ts';

export function hasDisplay({ devices }: Pick<DomainDefinition, 'devices'>): boolean {
  return devices.some((device) => device.type === 'video' || (device.type === 'other' && device.row.type === 'video'));
}
