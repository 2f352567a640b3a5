import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aCrd } from '#engine/registry/crd/testing/custom-resource-definition.ts';
import { crdStatus, isEstablished } from '#engine/registry/crd/crd-status.ts';
import type { Crd, CrdNames } from '#engine/registry/crd/definition.ts';

const NOW = '2026-11-15T19:55:45Z';
const LATER = '2026-11-15T20:00:00Z';

const names: CrdNames = {
  plural: 'gadgets',
  singular: 'gadget',
  shortNames: ['gd'],
  kind: 'Gadget',
  listKind: 'GadgetList',
  categories: ['all'],
};

const accepted = (crd: Crd, now = NOW): Crd => ({ ...crd, status: crdStatus(crd, [], now) });

/** Another definition of the same group, whose names are already accepted. */
function neighbour(held: Partial<CrdNames>, group = 'golden.local'): Crd {
  const crd = aCrd({ group }, { metadata: { name: `others.${group}` } });
  return { ...crd, status: { acceptedNames: { plural: 'others', kind: 'Other', ...held } } };
}

describe('crdStatus', () => {
  it('establishes a definition whose names are free', () => {
    assert.deepEqual(crdStatus(aCrd(), [], NOW), {
      conditions: [
        {
          type: 'NamesAccepted',
          status: 'True',
          lastTransitionTime: NOW,
          reason: 'NoConflicts',
          message: 'no conflicts found',
        },
        {
          type: 'Established',
          status: 'True',
          lastTransitionTime: NOW,
          reason: 'InitialNamesAccepted',
          message: 'the initial names have been accepted',
        },
      ],
      acceptedNames: names,
      storedVersions: ['v1'],
    });
  });

  it('computes the same status again', () => {
    const crd = accepted(aCrd());
    assert.deepEqual(crdStatus(crd, [crd], LATER), crd.status);
  });

  const conflicts: Record<string, { held: Partial<CrdNames>; reason: string; message: string }> = {
    'the plural': { held: { plural: 'gadgets' }, reason: 'PluralConflict', message: '"gadgets" is already in use' },
    'the singular, as a short name': {
      held: { shortNames: ['gadget'] },
      reason: 'SingularConflict',
      message: '"gadget" is already in use',
    },
    'a short name': { held: { singular: 'gd' }, reason: 'ShortNamesConflict', message: '"gd" is already in use' },
    'the kind': { held: { kind: 'Gadget' }, reason: 'KindConflict', message: '"Gadget" is already in use' },
    'the list kind': {
      held: { listKind: 'GadgetList' },
      reason: 'ListKindConflict',
      message: '"GadgetList" is already in use',
    },
  };
  for (const [what, { held, reason, message }] of Object.entries(conflicts)) {
    it(`rejects a name that is in use: ${what}`, () => {
      const { conditions } = crdStatus(aCrd(), [neighbour(held)], NOW);
      assert.deepEqual(
        conditions?.map((condition) => [condition.type, condition.status, condition.reason, condition.message]),
        [
          ['NamesAccepted', 'False', reason, message],
          ['Established', 'False', 'NotAccepted', 'not all names are accepted'],
        ],
      );
    });
  }

  it('reserves the names of built-in kinds', () => {
    const builtIn = {
      group: 'golden.local',
      plural: 'x',
      singular: 'x',
      shortNames: [],
      kind: 'Gadget',
      listKind: 'XList',
    };
    assert.equal(crdStatus(aCrd(), [], NOW, [builtIn]).conditions?.[0]?.reason, 'KindConflict');
    assert.equal(crdStatus(aCrd(), [], NOW, [{ ...builtIn, group: '' }]).conditions?.[0]?.status, 'True');
  });

  it('ignores names of other groups', () => {
    const other = neighbour({ plural: 'gadgets', kind: 'Gadget' }, 'other.local');
    assert.equal(crdStatus(aCrd(), [other], NOW).conditions?.[0]?.status, 'True');
  });

  it('stays established when a new name is in use, and keeps the old name', () => {
    const crd = accepted(aCrd());
    crd.spec = { ...crd.spec, names: { ...crd.spec.names, shortNames: ['taken'] } };
    const status = crdStatus(crd, [neighbour({ shortNames: ['taken'] })], LATER);
    assert.deepEqual(status.acceptedNames, names);
    assert.deepEqual(
      status.conditions?.map(({ type, status: is, lastTransitionTime }) => [type, is, lastTransitionTime]),
      [
        ['NamesAccepted', 'False', LATER],
        ['Established', 'True', NOW],
      ],
    );
  });

  it('keeps every version that was ever stored', () => {
    const crd = aCrd({}, { status: { storedVersions: ['v1alpha1'] } });
    assert.deepEqual(crdStatus(crd, [], NOW).storedVersions, ['v1alpha1', 'v1']);
  });

  it('reports Terminating once it is deleted', () => {
    const crd = accepted(aCrd());
    crd.metadata = { ...crd.metadata, deletionTimestamp: LATER };
    const status = crdStatus(crd, [], LATER);
    assert.deepEqual(status.conditions?.[2], {
      type: 'Terminating',
      status: 'True',
      lastTransitionTime: LATER,
      reason: 'InstanceDeletionPending',
      message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
    });
    assert.deepEqual(crdStatus({ ...crd, status }, [], '2027-01-01T00:00:00Z'), status);
  });

  it('is established if its condition is true', () => {
    assert.equal(isEstablished(aCrd()), false);
    assert.equal(isEstablished(accepted(aCrd())), true);
  });
});
