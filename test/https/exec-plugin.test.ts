/**
 * Exec plugins of a kubeconfig against the real engine: kubectl, virtctl and selfsame accept the same kubeconfig. The
 * plugin is a script that records its calls.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { openConnection } from '#cli/connection/api-connection.ts';
import { createHttpTransport } from '#client/http.ts';
import { readKubeconfigFile } from '#client/kubeconfig-file.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { createPluginHost } from '#client/credentials/plugin-process.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { ensurePki } from '#engine/auth/certificates.ts';
import { systemClock, type Clock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { findNewKubectl } from '#test/support/kubectl.ts';
import { createTemporaryDir, startServer, type Scope } from '#test/support/server-process.ts';

const ROOT = join(import.meta.dirname, '../..');
const V1 = 'client.authentication.k8s.io/v1';
const TIME_LIMIT_MS = 60_000;
const TOKENS = ['admin-token,root,1,system:masters', 'second-token,root,1,system:masters'];
const SELF = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
const REVIEW = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
/** Prints the prepared credential, and records each call with its KUBERNETES_EXEC_INFO. */
const PLUGIN = `#!/bin/sh
[ -n "$QUIET" ] || echo "message of the plugin" >&2
printf '%s\\n' "$KUBERNETES_EXEC_INFO" >> "$CALLS"
cat "$1"
`;

suite('exec plugins', () => {
  let dir: string;
  let admin: ClusterAccess;
  let certificates: { readonly certPem: string; readonly keyPem: string };

  const cleanups: (() => unknown)[] = [];
  const scope: Scope = { after: (fn) => void cleanups.push(fn) };
  after(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  });
  before(async () => {
    dir = createTemporaryDir(scope);
    const tokenAuthFile = join(dir, 'tokens.csv');
    writeFileSync(tokenAuthFile, `${TOKENS.join('\n')}\n`, { mode: 0o600 });
    const dataDir = join(dir, 'data');
    admin = (await startServer(scope, { dataDir, tokenAuthFile })).access();
    const pkiDir = join(dataDir, 'pki');
    const hosts = ['localhost', '127.0.0.1'];
    const pki = await ensurePki({ dir: pkiDir, hosts, now: () => systemClock.now(), log: silentLog });
    certificates = pki.issueClientCertificate({ user: 'certified', groups: ['system:masters'], days: 1 });
    mkdirSync(join(dir, 'kube'));
    writeFileSync(join(dir, 'kube/login'), PLUGIN, { mode: 0o755 });
  });

  /** Prepares the credential that the plugin prints from now on. */
  function prepare(status: object, apiVersion = V1): void {
    writeFileSync(join(dir, 'credential.json'), JSON.stringify({ kind: 'ExecCredential', apiVersion, status }));
  }

  /** Writes a kubeconfig with the plugin, and forgets earlier calls. */
  function writeConfig(exec: object = {}): string {
    rmSync(join(dir, 'calls'), { force: true });
    const path = join(dir, 'kube/config');
    const env = [{ name: 'CALLS', value: join(dir, 'calls') }];
    const args = [join(dir, 'credential.json')];
    const plugin = { apiVersion: V1, command: './login', args, env, interactiveMode: 'IfAvailable', ...exec };
    const authority = Buffer.from(admin.certificateAuthority ?? '').toString('base64');
    const extensions = [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'engine' } }];
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'main',
      clusters: [{ name: 'c', cluster: { server: admin.server, 'certificate-authority-data': authority, extensions } }],
      users: [{ name: 'u', user: { exec: plugin } }],
      contexts: [{ name: 'main', context: { cluster: 'c', user: 'u' } }],
    };
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
    return path;
  }

  function calls(): string[] {
    const path = join(dir, 'calls');
    // client-go ends the JSON with a line break.
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
  }

  /** Runs a program in another directory than that of the kubeconfig. */
  function run(program: string, args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const env = { PATH: process.env['PATH'], HOME: dir, NODE_COMPILE_CACHE: join(ROOT, '.cache/node-compile') };
    return new Promise((resolve) => {
      const child = execFile(program, args, { cwd: dir, env, timeout: TIME_LIMIT_MS }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr });
      });
      child.stdin?.end();
    });
  }
  const virtctl = (kubeconfig: string, ...args: string[]) =>
    run(join(ROOT, 'virtctl'), [`--kubeconfig=${kubeconfig}`, ...args]);
  const selfsame = (...args: string[]) => run(join(ROOT, 'selfsame'), args);

  function load(kubeconfig: string, clock: Clock): ClusterAccess {
    const { PATH } = process.env;
    return readKubeconfigFile(kubeconfig, createPluginHost({ env: { PATH, QUIET: '1' }, hasTerminal: false, clock }));
  }

  /** Returns a function that returns the name of the user as the server sees it, with the transport of controllers. */
  function openAsController(access: ClusterAccess, clock: Clock): () => Promise<string> {
    const transport = createHttpTransport(access, { userAgent: 'test', clock });
    cleanups.push(() => transport.close());
    return async () => userOf((await transport.request({ method: 'POST', path: SELF, body: REVIEW })).body);
  }

  function openAsVirtctl(access: ClusterAccess, clock: Clock): () => Promise<string> {
    const api = openConnection({ access, userAgent: 'test', clock, readFile: () => '' });
    cleanups.push(() => api.close());
    return async () => userOf(await api.post(SELF, REVIEW));
  }

  const connections = { 'the transport of controllers': openAsController, 'the connection of virtctl': openAsVirtctl };

  for (const [name, open] of Object.entries(connections)) {
    test(`${name} uses a token and a certificate`, async () => {
      prepare({ token: 'admin-token' });
      assert.equal(await open(load(writeConfig(), systemClock), systemClock)(), 'root');
      prepare({ clientCertificateData: certificates.certPem, clientKeyData: certificates.keyPem });
      const whoAmI = open(load(writeConfig(), systemClock), systemClock);
      assert.deepEqual(await Promise.all([whoAmI(), whoAmI(), whoAmI()]), ['certified', 'certified', 'certified']);
      assert.equal(calls().length, 1);
    });

    test(`${name} runs the plugin again before the credential expires`, async () => {
      const clock = new FakeClock();
      const expirationTimestamp = new Date(clock.now() + 3600_000).toISOString();
      prepare({ token: 'admin-token', expirationTimestamp });
      const whoAmI = open(load(writeConfig(), clock), clock);
      await whoAmI();
      prepare({ clientCertificateData: certificates.certPem, clientKeyData: certificates.keyPem });
      assert.equal(await whoAmI(), 'root');
      assert.equal(calls().length, 1);
      await clock.advance(3590_000);
      assert.equal(await whoAmI(), 'certified');
      assert.equal(calls().length, 2);
    });

    test(`${name} runs the plugin again once after the server refused its credential`, async () => {
      prepare({ token: 'revoked' });
      const kubeconfig = writeConfig({ command: join(dir, 'kube/rotating') });
      // The first call prints a revoked token.
      const rotating = PLUGIN.replace('cat "$1"', 'cat "$1"; cp "$1.next" "$1"');
      writeFileSync(join(dir, 'kube/rotating'), rotating, { mode: 0o755 });
      const next = { kind: 'ExecCredential', apiVersion: V1, status: { token: 'second-token' } };
      writeFileSync(join(dir, 'credential.json.next'), JSON.stringify(next));
      const whoAmI = open(load(kubeconfig, systemClock), systemClock);
      assert.equal(await whoAmI(), 'root');
      assert.equal(calls().length, 2);
      assert.equal(await whoAmI(), 'root');
      assert.equal(calls().length, 2);
    });

    test(`${name} reports a credential that the server still refuses`, async () => {
      prepare({ token: 'revoked' });
      const whoAmI = open(load(writeConfig(), systemClock), systemClock);
      await assert.rejects(whoAmI(), { name: 'ApiError', code: 401 });
      assert.equal(calls().length, 2);
    });
  }

  const found = findNewKubectl();
  const skip = 'missing' in found ? found.missing : false;
  const kubectl = 'missing' in found ? '' : found.path;

  const kinds: Record<string, { version: string; user: string; status: () => object }> = {
    'a token, v1': { version: 'v1', user: 'root', status: () => ({ token: 'admin-token' }) },
    'a token, v1beta1': { version: 'v1beta1', user: 'root', status: () => ({ token: 'admin-token' }) },
    'a certificate': {
      version: 'v1',
      user: 'certified',
      status: () => ({ clientCertificateData: certificates.certPem, clientKeyData: certificates.keyPem }),
    },
  };
  for (const [sentence, { version, user, status }] of Object.entries(kinds)) {
    test(`kubectl, selfsame and virtctl use the same kubeconfig with ${sentence}`, { skip }, async () => {
      const apiVersion = `client.authentication.k8s.io/${version}`;
      prepare(status(), apiVersion);
      const kubeconfig = writeConfig({ apiVersion, provideClusterInfo: true });
      const whoAmI = await run(kubectl, [`--kubeconfig=${kubeconfig}`, 'auth', 'whoami', '-o', 'json']);
      assert.equal(whoAmI.code, 0, whoAmI.stderr);
      assert.equal(userOf(JSON.parse(whoAmI.stdout)), user);
      const expected = calls();

      const installed = await selfsame('install', '--apply', '--kubeconfig', kubeconfig);
      assert.equal(installed.code, 0, installed.stderr);
      const listed = await virtctl(kubeconfig, 'identity', 'duplicates');
      assert.equal(listed.code, 0, listed.stderr);
      assert.match(listed.stderr, /^message of the plugin\n/);
      const ours = calls().slice(expected.length);
      assert.equal(ours.length, 2);
      for (const info of ours) assert.deepEqual(JSON.parse(info), JSON.parse(expected[0] ?? ''));
    });
  }

  test('virtctl and selfsame print an error once, without the output of the plugin', async () => {
    prepare({ token: ['do-not-print'] });
    const kubeconfig = writeConfig();
    const why = `Cannot get credentials from exec plugin "${join(dir, 'kube/login')}": status.token`;
    for (const { code, stderr } of [
      await virtctl(kubeconfig, 'start', 'web'),
      await selfsame('uninstall', '--kubeconfig', kubeconfig),
    ]) {
      assert.equal(code, 1);
      assert.equal(stderr.split(why).length, 2, stderr);
      assert.doesNotMatch(stderr, /do-not-print/);
    }
    assert.equal(calls().length, 2);
  });

  test('virtctl prints the install hint of a missing plugin', async () => {
    const kubeconfig = writeConfig({ command: 'selfsame-no-such-plugin', installHint: 'get it from example.org' });
    const { code, stderr } = await virtctl(kubeconfig, 'identity', 'duplicates');
    assert.equal(code, 1);
    assert.equal(
      stderr,
      'error: Cannot get credentials from exec plugin "selfsame-no-such-plugin": the program does not exist; get it from example.org\n',
    );
  });
});

function userOf(review: unknown): string {
  return (review as { status: { userInfo: { username: string } } }).status.userInfo.username;
}
