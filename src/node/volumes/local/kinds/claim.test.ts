import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { volumeOfClaim } from '#node/volumes/local/kinds/claim.ts';
import { aClaim, aLocalVolume, aScene, type VolumesScene } from '#node/volumes/local/testing/volumes-scene.ts';

const cases: Record<string, { given: (scene: VolumesScene) => void; is: string; message?: RegExp }> = {
  'waits for a claim that is missing': {
    given: () => undefined,
    is: 'waiting',
    message: /persistentvolumeclaim "data" not found/,
  },
  'waits for a claim to be bound': {
    given: ({ claims }) => claims.set('data', aClaim('data', { phase: 'Pending' })),
    is: 'waiting',
    message: /not bound/,
  },
  'waits for the name of the volume in the claim': {
    given: ({ claims }) => claims.set('data', aClaim('data')),
    is: 'waiting',
    message: /not bound/,
  },
  'fails for a claim that has lost its volume': {
    given: ({ claims }) => claims.set('data', aClaim('data', { phase: 'Lost', volumeName: 'pvc-1' })),
    is: 'failed',
    message: /lost its volume "pvc-1"/,
  },
  'waits for the volume': {
    given: ({ claims }) => claims.set('data', aClaim('data', { volumeName: 'pvc-1' })),
    is: 'waiting',
    message: /persistentvolume "pvc-1" not found/,
  },
  'fails for the volume of another claim': {
    given: (scene) => {
      scene.bind('theirs', aLocalVolume());
      scene.claims.set('data', aClaim('data', { volumeName: 'pvc-1' }));
    },
    is: 'failed',
    message: /not bound to persistentvolumeclaim "data"/,
  },
  'returns the volume': { given: (scene) => scene.bind('data', aLocalVolume()), is: 'bound' },
};

describe('claim', () => {
  for (const [sentence, { given, is, message }] of Object.entries(cases)) {
    it(sentence, async () => {
      await using scene = aScene();
      given(scene);
      const found = await volumeOfClaim('data', scene.lookups);
      assert.equal(found.is, is);
      if (message !== undefined) assert.match('message' in found ? found.message : '', message);
    });
  }
});
