import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  claimPropertySetsOf,
  minimumSizeOf,
  type ClaimPropertySet,
  type StorageProfile,
} from '#api/storage/storage-profile.ts';

function aProfile(fields: Partial<StorageProfile>, annotations?: Record<string, string>): StorageProfile {
  return {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'StorageProfile',
    ...fields,
    metadata: { name: 'fast', annotations },
  };
}

describe('the property sets of a profile are', () => {
  const files: ClaimPropertySet[] = [{ volumeMode: 'Filesystem', accessModes: ['ReadWriteOnce'] }];
  const blocks: ClaimPropertySet[] = [{ volumeMode: 'Block', accessModes: ['ReadWriteMany'] }];
  const cases: Record<string, { profile: Partial<StorageProfile>; want: ClaimPropertySet[] }> = {
    'empty without spec and status': { profile: {}, want: [] },
    'those of the status': { profile: { status: { claimPropertySets: files } }, want: files },
    'those of the status rather than those of the spec': {
      profile: { spec: { claimPropertySets: files }, status: { claimPropertySets: blocks } },
      want: blocks,
    },
    'those of the spec without a status': { profile: { spec: { claimPropertySets: files } }, want: files },
    'those of the spec if the status has none': {
      profile: { spec: { claimPropertySets: files }, status: { provisioner: 'x' } },
      want: files,
    },
  };
  for (const [sentence, { profile, want }] of Object.entries(cases)) {
    test(sentence, () => assert.deepEqual(claimPropertySetsOf(aProfile(profile)), want));
  }
});

describe('the minimum size of a volume', () => {
  const cases: Record<string, { annotations?: Record<string, string>; want?: string }> = {
    'is unknown without annotations': {},
    'is unknown without the annotation': { annotations: { other: '1Gi' } },
    'is the value of the annotation': {
      annotations: { 'cdi.kubevirt.io/minimumSupportedPvcSize': '4Gi' },
      want: '4Gi',
    },
    'is unknown if the value is not a quantity': {
      annotations: { 'cdi.kubevirt.io/minimumSupportedPvcSize': 'large' },
    },
    'is unknown if the value is empty': { annotations: { 'cdi.kubevirt.io/minimumSupportedPvcSize': '' } },
  };
  for (const [sentence, { annotations, want }] of Object.entries(cases)) {
    test(sentence, () => assert.equal(minimumSizeOf(aProfile({}, annotations)), want));
  }
});
