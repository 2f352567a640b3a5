import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { parseCniConfig } from '#node/network/linux/cni/cni-config.ts';
import { CniRunner } from '#node/network/linux/cni/cni-runner.ts';

const ATTACHMENT = {
  containerId: 'guest-1',
  namespace: '/run/netns/none',
  interface: 'net1',
  pod: { namespace: 'default', name: 'virt-launcher-db', uid: 'uid-1' },
  capabilities: { mac: '52:54:00:00:00:05', ips: ['192.168.7.2/24'] },
};
const RESULT =
  '{"cniVersion":"1.0.0","interfaces":[{"name":"net1","sandbox":"/x"}],"ips":[{"address":"192.168.7.2/24","gateway":"192.168.7.1"}],"routes":[{"dst":"0.0.0.0/0"}]}';
/** Writes down each call with its input. */
const RECORD = 'echo "$CNI_COMMAND $(basename $0) $(cat)" >>"$(dirname $0)/../calls"';

interface Scene {
  readonly runner: CniRunner;
  readonly cache: string;
  calls(): Promise<string[]>;
}

/** Creates a runner with plugins that are shell scripts. */
async function scene(t: TestContext, plugins: Readonly<Record<string, string>>, timeoutMs = 20_000): Promise<Scene> {
  const directory = await mkdtemp(join(tmpdir(), 'selfsame-cni-'));
  t.after(() => rm(directory, { recursive: true }));
  const [bin, cache] = [join(directory, 'bin'), join(directory, 'cache')];
  await mkdir(bin);
  await mkdir(cache);
  for (const [name, body] of Object.entries(plugins)) {
    await writeFile(join(bin, name), `#!/bin/sh\n${body}\n`);
    await chmod(join(bin, name), 0o755);
  }
  const calls = async () => (await readFile(join(directory, 'calls'), 'utf8').catch(() => '')).split('\n').slice(0, -1);
  return { runner: new CniRunner({ pluginDirs: [bin], cacheDir: cache, timeoutMs }), cache, calls };
}

function configOf(...plugins: readonly object[]): ReturnType<typeof parseCniConfig> {
  return parseCniConfig(JSON.stringify({ cniVersion: '1.0.0', name: 'lan', plugins }), 'of a test');
}

const commandsOf = (calls: readonly string[]) => calls.map((call) => call.split(' ').slice(0, 2).join(' '));

describe('a chain of CNI plugins', () => {
  test('gives each plugin the result before, and DEL the last one in reverse order', async (t) => {
    const good = `${RECORD}; [ $CNI_COMMAND != ADD ] || echo '${RESULT}'`;
    const { runner, cache, calls } = await scene(t, { one: good, two: good });
    const result = await runner.add(
      configOf({ type: 'one', capabilities: { mac: true } }, { type: 'two' }),
      ATTACHMENT,
    );
    assert.deepEqual(result.ips, [
      {
        address: { family: 4, value: 0xc0_a8_07_02n },
        prefix: 24,
        gateway: { family: 4, value: 0xc0_a8_07_01n },
      },
    ]);
    assert.deepEqual(result.defaultGateways, [{ family: 4, value: 0xc0_a8_07_01n }]);
    await runner.check('guest-1', 'net1');
    assert.deepEqual(await runner.result('guest-1', 'net1'), result);
    assert.deepEqual(await runner.interfaces('guest-1'), ['net1']);
    await runner.delete('guest-1', 'net1');

    const lines = await calls();
    assert.deepEqual(commandsOf(lines), ['ADD one', 'ADD two', 'CHECK one', 'CHECK two', 'DEL two', 'DEL one']);
    const inputs = lines.map((line) => JSON.parse(line.slice(line.indexOf('{'))) as Record<string, unknown>);
    assert.deepEqual(inputs[0], {
      type: 'one',
      name: 'lan',
      cniVersion: '1.0.0',
      capabilities: { mac: true },
      runtimeConfig: { mac: '52:54:00:00:00:05' },
    });
    for (const input of inputs.slice(1)) assert.deepEqual(input['prevResult'], JSON.parse(RESULT));
    assert.equal(inputs[1]?.['runtimeConfig'], undefined);
    assert.deepEqual(await readdir(cache), []);
    await runner.delete('guest-1', 'net1');
    assert.equal((await calls()).length, 6);
  });

  test('has the environment of the specification', async (t) => {
    const { runner, calls } = await scene(t, {
      one: `env | grep ^CNI_ | sort >>"$(dirname $0)/../calls"; echo '${RESULT}'`,
    });
    await runner.add(configOf({ type: 'one' }), ATTACHMENT);
    const lines = (await calls()).filter((line) => !line.startsWith('CNI_PATH='));
    assert.deepEqual(lines, [
      'CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=virt-launcher-db;K8S_POD_INFRA_CONTAINER_ID=guest-1;K8S_POD_UID=uid-1',
      'CNI_COMMAND=ADD',
      'CNI_CONTAINERID=guest-1',
      'CNI_IFNAME=net1',
      'CNI_NETNS=/run/netns/none',
    ]);
  });

  const failures: Record<string, { plugin: string; message: RegExp; timeoutMs?: number }> = {
    'reports the message of a plugin that fails': {
      plugin: `[ $CNI_COMMAND != ADD ] || { echo '{"code":11,"msg":"no address","details":"the pool is empty"}'; exit 1; }`,
      message: /^CNI plugin "bad" failed at ADD: no address; the pool is empty$/,
    },
    'reports what a plugin wrote that fails without a message': {
      plugin: '[ $CNI_COMMAND != ADD ] || { echo broken >&2; exit 3; }',
      message: /^CNI plugin "bad" failed at ADD: broken$/,
    },
    'reports a plugin that prints nonsense': {
      plugin: 'echo hello',
      message: /^CNI plugin "bad" failed at ADD: it printed "hello"; expected a result as JSON$/,
    },
    'reports a plugin that prints nothing': {
      plugin: 'true',
      message: /^CNI plugin "bad" failed at ADD: it printed nothing; expected a result as JSON$/,
    },
    'reports a result that is not valid': {
      plugin: `echo '{"ips":[{"address":"here"}]}'`,
      message: /^CNI plugin "bad" printed a result that is not valid: "here" is not a valid IP address/,
    },
    'kills a plugin that prints without end': {
      plugin: '[ $CNI_COMMAND != ADD ] || yes',
      message: /^CNI plugin "bad" failed at ADD: it printed more than 262144 bytes and was killed$/,
    },
    'kills a plugin that hangs, with its children': {
      plugin: '[ $CNI_COMMAND != ADD ] || { sleep 1000 & sleep 1000; }',
      message: /^CNI plugin "bad" failed at ADD: it took longer than 2000 ms and was killed$/,
      timeoutMs: 2000,
    },
  };
  for (const [name, { plugin, message, timeoutMs }] of Object.entries(failures)) {
    test(`${name}, and undoes what was added before`, async (t) => {
      const good = `${RECORD}; [ $CNI_COMMAND != ADD ] || echo '${RESULT}'`;
      const { runner, cache, calls } = await scene(t, { good, bad: plugin }, timeoutMs);
      const config = configOf({ type: 'good' }, { type: 'bad' });
      await assert.rejects(runner.add(config, ATTACHMENT), { name: 'CniError', message });
      assert.deepEqual(commandsOf(await calls()), ['ADD good', 'DEL good']);
      assert.deepEqual(await readdir(cache), []);
    });
  }

  test('deletes with the other plugins if one fails, and again until all succeed', async (t) => {
    const good = `${RECORD}; [ $CNI_COMMAND != ADD ] || echo '${RESULT}'`;
    const stubborn = `${RECORD}; case $CNI_COMMAND in ADD) echo '${RESULT}' ;; DEL) [ -e "$(dirname $0)/../ready" ] || exit 1 ;; esac`;
    const { runner, cache, calls } = await scene(t, { good, stubborn });
    await runner.add(configOf({ type: 'good' }, { type: 'stubborn' }), ATTACHMENT);
    await assert.rejects(runner.delete('guest-1', 'net1'), /CNI plugin "stubborn" failed at DEL: exit code 1/);
    await writeFile(join(cache, '../ready'), '');
    await runner.delete('guest-1', 'net1');
    assert.deepEqual(commandsOf(await calls()).slice(2), ['DEL stubborn', 'DEL good', 'DEL stubborn', 'DEL good']);
  });

  test('deletes what was being added when the agent was killed', async (t) => {
    const { runner, cache, calls } = await scene(t, { one: RECORD });
    const config = configOf({ type: 'one' });
    await writeFile(join(cache, 'guest-1.net1.json'), JSON.stringify({ config, attachment: ATTACHMENT }));
    assert.equal(await runner.result('guest-1', 'net1'), undefined);
    await runner.delete('guest-1', 'net1');
    assert.deepEqual(commandsOf(await calls()), ['DEL one']);
  });

  test('names a plugin that is not installed', async (t) => {
    const { runner, cache } = await scene(t, {});
    await assert.rejects(runner.add(configOf({ type: 'sriov' }), ATTACHMENT), {
      permanent: true,
      message: /^CNI plugin "sriov" is not in .*bin; install it/,
    });
    assert.deepEqual(await readdir(cache), []);
  });

  test('stops with its signal', async (t) => {
    const { runner, cache } = await scene(t, { slow: '[ $CNI_COMMAND != ADD ] || sleep 1000' });
    const abort = new AbortController();
    const adding = runner.add(configOf({ type: 'slow' }), ATTACHMENT, { signal: abort.signal });
    while ((await readdir(cache)).length === 0) await new Promise((resolve) => setImmediate(resolve));
    abort.abort(new Error('the VM was deleted'));
    await assert.rejects(adding, /the VM was deleted/);
  });
});
