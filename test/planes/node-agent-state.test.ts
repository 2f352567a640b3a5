/**
 * The node agent and the persistent state of a VM: the launcher pod names its claim, and the guest starts with its
 * content.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PODS, startAgentScene } from '#test/support/agent-scene.ts';

const KEEPING = {
  domain: {
    memory: { guest: '128Mi' },
    machine: { type: 'q35' },
    firmware: { uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223' },
    devices: { tpm: { persistent: true } },
  },
  networks: [],
};
const NAMING = {
  volumes: [
    { name: 'disk', persistentVolumeClaim: { claimName: 'a-disk' } },
    { name: 'vm-state', persistentVolumeClaim: { claimName: 'persistent-state-for-db-abcde' } },
  ],
};

describe('a guest with state', () => {
  it('starts with the volume that its pod names, and releases it at its end', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db', KEEPING, NAMING);
    const directory = '/simulated/persistent-state-for-db-abcde/state';
    assert.deepEqual(scene.volumes.calls, ['prepare db', 'prepareState persistent-state-for-db-abcde']);
    assert.deepEqual(scene.hypervisor().inspect(id)?.definition.state, { directory });

    await scene.api.ok('DELETE', `${PODS}/launcher-db`);
    await scene.settle();

    assert.equal(scene.hypervisor().get(id), undefined);
    assert.equal(scene.volumes.calls.at(-1), 'release');
  });

  it('waits for the volume, and reports why', async (t) => {
    const scene = await startAgentScene(t);
    const { prepareState } = scene.volumes;
    const waiting = { is: 'waiting', reason: 'VolumeInUse', message: 'another guest has it' } as const;
    scene.volumes.prepareState = async () => waiting;
    const { id } = await scene.launch('db', KEEPING, NAMING);
    assert.equal(scene.hypervisor().get(id), undefined);
    await scene.advance(10);
    const [status] = (await scene.pod('launcher-db')).status.containerStatuses;
    assert.deepEqual(status.state.waiting, { reason: 'VolumeInUse', message: 'another guest has it' });

    scene.volumes.prepareState = prepareState;
    await scene.advance(60);

    assert.equal(scene.hypervisor().get(id)?.current.state, 'running');
  });

  it('never starts without it', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db', KEEPING);
    assert.equal(scene.hypervisor().get(id), undefined);
    const { status } = await scene.pod('launcher-db');
    assert.equal(status.phase, 'Failed');
    assert.match(status.message, /spec\.domain\.devices\.tpm\.persistent/);
  });
});
