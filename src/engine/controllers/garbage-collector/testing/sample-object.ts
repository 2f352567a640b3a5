/** Objects and references for the tests of the collector. Uids are derived from names. */
import type { CollectedObject } from '#engine/controllers/garbage-collector/owner-patches.ts';
import type { ObjectMeta, OwnerReference, ResourceType, Stored } from '#kube/meta.ts';

export const THINGS: ResourceType = {
  group: 'test.local',
  version: 'v1',
  kind: 'Thing',
  plural: 'things',
  namespaced: true,
};

export const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z' };
export const FOREGROUND = { ...DELETED, finalizers: ['foregroundDeletion'] };
export const ORPHAN = { ...DELETED, finalizers: ['orphan'] };

export const uidOf = (name: string) => `uid-${name}`;

export function aReference(name: string, overrides: Partial<OwnerReference> = {}): OwnerReference {
  return { apiVersion: 'test.local/v1', kind: 'Thing', name, uid: uidOf(name), ...overrides };
}

export const blocking = (name: string) => aReference(name, { blockOwnerDeletion: true });

export function anObject(name: string, metadata: ObjectMeta = {}): Stored {
  const identity = { name, namespace: 'ns', uid: uidOf(name), resourceVersion: '7', creationTimestamp: '' };
  return { apiVersion: 'test.local/v1', kind: 'Thing', metadata: { ...identity, ...metadata } };
}

export function aThing(name: string, metadata: ObjectMeta = {}, type: ResourceType = THINGS): CollectedObject {
  return { type, object: anObject(name, metadata) };
}
