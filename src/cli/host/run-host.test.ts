import assert from 'node:assert/strict';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { HostAnswer } from '#api/host-api.ts';
import { exitCodeOf, renderError } from '#lib/command-line/render-error.ts';
import { runHost } from '#cli/host/run-host.ts';

interface Scene {
  readonly dataDir: string;
  /** The requests to nodes: `node-1 /host/v1/list {...}`. */
  readonly asked: string[];
  run(words: string, options?: { node?: string; files?: Record<string, string> }): Promise<string>;
}

/** Starts nodes that respond to every request in the same way. */
async function startScene(t: TestContext, nodes: readonly string[], answer: HostAnswer): Promise<Scene> {
  const dataDir = mkdtempSync(join(tmpdir(), 'run-host-'));
  t.after(() => rmSync(dataDir, { recursive: true }));
  const asked: string[] = [];
  for (const node of nodes) {
    const dir = join(dataDir, 'nodes', node);
    mkdirSync(dir, { recursive: true });
    const fd = openSync(dir, 'r');
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        asked.push(`${node} ${request.url} ${body}`);
        response.end(JSON.stringify(answer));
      });
    });
    await new Promise<void>((listening) => server.listen(`/proc/self/fd/${fd}/host.sock`, listening));
    t.after(async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
      closeSync(fd);
    });
  }
  const run: Scene['run'] = async (words, { node, files = {} } = {}) => {
    let text = '';
    const out = (mark: string) => ({ write: (part: string) => (text += `${mark}${part}`) });
    const readFile = (path: string) => {
      const file = files[path];
      if (file === undefined) throw new Error('no such file');
      return file;
    };
    const running = runHost({
      dataDir,
      node,
      words: words.split(' ').filter((word) => word !== ''),
      stdout: out(''),
      stderr: out('! '),
      readFile,
    });
    const code = await running.then(
      () => 0,
      (error: unknown) => {
        text += `! ${renderError(error)}\n`;
        return exitCodeOf(error);
      },
    );
    return `${code} ${text}`;
  };
  return { dataDir, asked, run };
}

const done = { status: { code: 0, message: 'Done' } };
const VM = '{"vmId":"a","memSize":"5"}';

const calls: Record<string, { words: string; files?: Record<string, string>; want: string }> = {
  'list requests everything': { words: 'list', want: '/host/v1/list {"fullStatus":true,"vmList":[]}' },
  'list ids requests ids': { words: 'list ids vms:a,b', want: '/host/v1/list {"onlyUUID":true,"vmList":["a","b"]}' },
  'create accepts a file': { words: 'create vm.json', files: { 'vm.json': VM }, want: `/host/v1/create ${VM}` },
  'create accepts pairs': { words: 'create vmId=a memSize=5', want: `/host/v1/create ${VM}` },
  'create prefers pairs to the file': {
    words: 'create vm.json memSize=7 devices=[]',
    files: { 'vm.json': VM },
    want: '/host/v1/create {"vmId":"a","memSize":"7","devices":[]}',
  },
  'destroy accepts an id': { words: 'destroy a', want: '/host/v1/destroy {"vmId":"a"}' },
  'getAllVmStats accepts no arguments': { words: 'getAllVmStats', want: '/host/v1/getAllVmStats {}' },
  'hotplugDisk accepts a whole call': {
    words: 'hotplugDisk d.json',
    files: { 'd.json': VM },
    want: `/host/v1/hotplugDisk ${VM}`,
  },
  'hotunplugNic accepts an id and pairs': {
    words: 'hotunplugNic a macAddr=m',
    want: '/host/v1/hotunplugNic {"vmId":"a","nic":{"macAddr":"m"}}',
  },
};

for (const [name, { words, files = {}, want }] of Object.entries(calls)) {
  test(name, async (t) => {
    const scene = await startScene(t, ['node-1'], done);
    assert.match(await scene.run(words, { files }), /^0 /);
    assert.deepEqual(scene.asked, [`node-1 ${want}`]);
  });
}

const mistakes: Record<string, { words: string; want: string; code?: number }> = {
  'a verb with a mistake in it': { words: 'lsit', want: 'unknown verb "lsit"; did you mean "list"?' },
  'an unknown verb': { words: 'format', want: 'unknown verb "format"; expected one of list, getAllVmStats, create' },
  'an unknown view': { words: 'list short', want: 'unknown view "short"' },
  'an empty list of VMs': { words: 'list vms:', want: '"vms:" names no VM' },
  'a missing file': { words: 'create none.json', want: 'Cannot read none.json: no such file', code: 1 },
  'a file that is not JSON': { words: 'create bad.json', want: 'bad.json is not JSON: ', code: 1 },
  'a file with a list': { words: 'create list.json', want: 'list.json is not a JSON object', code: 1 },
  'an argument that is not a pair': { words: 'create a=1 b', want: 'unexpected argument "b"; expected key=value' },
  'a VM without a name': { words: 'destroy', want: 'expected one vmId' },
  'nothing to create': { words: 'create', want: 'no parameters given' },
};

for (const [name, { words, want, code = 2 }] of Object.entries(mistakes)) {
  test(`${name} is refused without a request`, async (t) => {
    const scene = await startScene(t, ['node-1'], done);
    const output = await scene.run(words, { files: { 'bad.json': '{', 'list.json': '[]' } });
    assert.ok(output.startsWith(`${code} ! error: ${want}`), output);
    assert.deepEqual(scene.asked, []);
  });
}

test('shows the usage of a verb', async (t) => {
  const scene = await startScene(t, ['node-1'], done);
  const usage = 'Usage: selfsame host [flags] destroy ...\nTry: selfsame host destroy --help\n';
  assert.equal(await scene.run('destroy'), `2 ! error: expected one vmId\n${usage}`);
});

test('prints code and message of a refusal', async (t) => {
  const scene = await startScene(t, ['node-1'], { status: { code: 4, message: 'Virtual machine already exists' } });
  assert.equal(await scene.run('create vmId=a'), '1 ! error: 4 Virtual machine already exists\n');
});

test('requires --node if there are several nodes', async (t) => {
  const scene = await startScene(t, ['node-2', 'node-1'], done);
  assert.equal(
    await scene.run('list'),
    `1 ! error: Cannot choose a node: ${scene.dataDir} has node-1, node-2; choose one with --node\n`,
  );
  assert.equal(await scene.run('destroy a', { node: 'node-2' }), '0 Done\n');
  assert.equal(
    await scene.run('list', { node: 'n' }),
    `1 ! error: Cannot find node "n": ${scene.dataDir} has node-1, node-2\n`,
  );
  assert.deepEqual(scene.asked, ['node-2 /host/v1/destroy {"vmId":"a"}']);
});

test('reports a node without a running agent', async (t) => {
  const scene = await startScene(t, [], done);
  const dir = join(scene.dataDir, 'nodes', 'node-1');
  mkdirSync(dir, { recursive: true });
  const want = `1 ! error: Cannot reach the node in ${dir}: no agent is running; start it with selfsame up\n`;
  assert.equal(await scene.run('list'), want);
  writeFileSync(join(dir, 'host.sock'), '');
  assert.equal(await scene.run('list'), want);
});

test('prints notes on omitted devices', async (t) => {
  const vm = { vmId: 'a', status: 'Up' as const };
  const scene = await startScene(t, ['node-1'], { ...done, vmList: [vm], notes: ['a disk is left out'] });
  assert.equal(await scene.run('create vmId=a'), '0 ! Note: a disk is left out\n\na\n\tStatus = Up\n');
});

test('help needs no node', async (t) => {
  const scene = await startScene(t, [], done);
  assert.match(await scene.run('list --help'), /^0 list\n {12}\[view\] \[vms:vmId1,vmId2\]\n/);
  assert.match(await scene.run('help'), /hotunplugNic\n {12}FILE.json \| vmId key=value/);
});
