/** Reports whether a guest has a video card, from its spec or from an import. Pure. */
import type { DomainDefinition } from '#node/definition/domain-definition.ts';

export function hasDisplay({ devices }: Pick<DomainDefinition, 'devices'>): boolean {
  return devices.some((device) => device.type === 'video' || (device.type === 'other' && device.row.type === 'video'));
}
