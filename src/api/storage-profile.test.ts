import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  claimPropertySetsOf,
  minimumSizeOf,
  type ClaimPropertySet,
  type StorageProfile,
} from '#api/storage-profile.ts';

function aProfile(fields: Partial<StorageProfile>, annotations?: Record<string, string>): StorageProfile {
  return {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'StorageProfile',
    ...fields,
    metadata: { name: 'fast', annotations },
  };
}

describe('what claims may ask for', () => {
  const files: ClaimPropertySet[] = [{ volumeMode: 'Filesystem', accessModes: ['ReadWriteOnce'] }];
  const blocks: ClaimPropertySet[] = [{ volumeMode: 'Block', accessModes: ['ReadWriteMany'] }];
  const cases: Record<string, { profile: Partial<StorageProfile>; want: ClaimPropertySet[] }> = {
    'nothing is known': { profile: {}, want: [] },
    'the status tells it': { profile: { status: { claimPropertySets: files } }, want: files },
    'the status before the spec': {
      profile: { spec: { claimPropertySets: files }, status: { claimPropertySets: blocks } },
      want: blocks,
    },
    'the spec, where nobody writes a status': { profile: { spec: { claimPropertySets: files } }, want: files },
    'the spec, where the status tells other things': {
      profile: { spec: { claimPropertySets: files }, status: { provisioner: 'x' } },
      want: files,
    },
  };
  for (const [sentence, { profile, want }] of Object.entries(cases)) {
    test(sentence, () => assert.deepEqual(claimPropertySetsOf(aProfile(profile)), want));
  }
});

describe('the smallest volume', () => {
  const cases: Record<string, { annotations?: Record<string, string>; want?: string }> = {
    'is not told': {},
    'is not told among other things': { annotations: { other: '1Gi' } },
    'is told': { annotations: { 'cdi.kubevirt.io/minimumSupportedPvcSize': '4Gi' }, want: '4Gi' },
    'is no quantity': { annotations: { 'cdi.kubevirt.io/minimumSupportedPvcSize': 'large' } },
    'is empty': { annotations: { 'cdi.kubevirt.io/minimumSupportedPvcSize': '' } },
  };
  for (const [sentence, { annotations, want }] of Object.entries(cases)) {
    test(sentence, () => assert.equal(minimumSizeOf(aProfile({}, annotations)), want));
  }
});
