import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { inClusterAccess, loadKubeconfig } from '#client/kubeconfig.ts';
import { KubeconfigError } from '#client/kubeconfig-fields.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import type { PluginCall, PluginHost } from '#client/credentials/plugin-process.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';

const PEM = '-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n';
const DATA = Buffer.from(PEM).toString('base64');
const files: Record<string, string> = {
  '/home/me/.kube/pki/ca.crt': 'CA',
  '/abs/client.crt': 'CRT',
  '/abs/client.key': 'KEY',
};

function readFile(path: string): string {
  const text = files[path];
  if (text === undefined) throw new Error('ENOENT: no such file');
  return text;
}

function config({ cluster = {}, user = {}, context = {} }: { cluster?: object; user?: object; context?: object } = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'main',
    clusters: [{ name: 'local', cluster: { server: 'https://127.0.0.1:6443', ...cluster } }],
    users: [
      { name: 'admin', user },
      { name: 'nobody', user: null },
    ],
    contexts: [
      { name: 'main', context: { cluster: 'local', user: 'admin', ...context } },
      { name: 'other', context: { cluster: 'local', user: 'nobody', namespace: 'elsewhere' } },
    ],
  };
}

const load = (value: unknown, context?: string): ClusterAccess =>
  loadKubeconfig(typeof value === 'string' ? value : stringify(value), {
    context,
    directory: '/home/me/.kube',
    readFile,
  });

const cases: Record<string, { config: unknown; context?: string; want: Partial<ClusterAccess> }> = {
  'reads data in the file itself': {
    config: config({
      cluster: { 'certificate-authority-data': DATA, 'tls-server-name': 'api.test' },
      user: { 'client-certificate-data': DATA, 'client-key-data': DATA },
    }),
    want: {
      certificateAuthority: PEM,
      clientCertificate: PEM,
      clientKey: PEM,
      serverName: 'api.test',
      namespace: 'default',
    },
  },
  'reads files relative to the kubeconfig, and absolute ones': {
    config: config({
      cluster: { 'certificate-authority': 'pki/ca.crt' },
      user: { 'client-certificate': '/abs/client.crt', 'client-key': '/abs/client.key' },
    }),
    want: { certificateAuthority: 'CA', clientCertificate: 'CRT', clientKey: 'KEY' },
  },
  'prefers data to the file': {
    config: config({ cluster: { 'certificate-authority': 'missing', 'certificate-authority-data': DATA } }),
    want: { certificateAuthority: PEM },
  },
  'reads a token': { config: config({ user: { token: 'secret' } }), want: { token: 'secret', tokenFile: undefined } },
  'resolves a token file': {
    config: config({ user: { tokenFile: 'token' } }),
    want: { tokenFile: '/home/me/.kube/token' },
  },
  'uses another context, whose user has no credentials': {
    config: config({ user: { token: 'secret' } }),
    context: 'other',
    want: { namespace: 'elsewhere', token: undefined },
  },
  'skips verification if requested': {
    config: config({ cluster: { 'insecure-skip-tls-verify': true } }),
    want: { insecureSkipTlsVerify: true },
  },
  'reads JSON, which is also YAML': {
    config: JSON.stringify(config()),
    want: { server: 'https://127.0.0.1:6443', insecureSkipTlsVerify: false },
  },
};

for (const [sentence, { config: value, context, want }] of Object.entries(cases)) {
  test(`kubeconfig: ${sentence}`, () => {
    const access = load(value, context);
    for (const [field, expected] of Object.entries(want))
      assert.equal(access[field as keyof ClusterAccess], expected, field);
  });
}

const refused: Record<string, { config: unknown; context?: string; want: RegExp }> = {
  'a text that is not YAML': { config: '{', want: /^KubeconfigError: Cannot read the kubeconfig/ },
  'a text that is not a map': { config: '- a', want: /not a map of fields/ },
  'another kind': { config: { kind: 'Pod' }, want: /its kind is "Pod"; expected Config/ },
  'an unknown context': {
    config: config(),
    context: 'x',
    want: /context "x" does not exist; expected one of "main", "other"/,
  },
  'an unknown cluster': {
    config: config({ context: { cluster: 'x' } }),
    want: /cluster "x" does not exist; expected one of "local"/,
  },
  'an unknown user': {
    config: config({ context: { user: 'x' } }),
    want: /user "x" does not exist; expected one of "admin", "nobody"/,
  },
  'a missing current context': { config: { ...config(), 'current-context': '' }, want: /no context is selected/ },
  'a config without lists': {
    config: { 'current-context': 'a' },
    want: /context "a" does not exist; there are no contexts/,
  },
  'a server without TLS': {
    config: config({ cluster: { server: 'http://x' } }),
    want: /server is "http:\/\/x"; expected an https URL/,
  },
  'a missing file': {
    config: config({ cluster: { 'certificate-authority': 'x.crt' } }),
    want: /Cannot read \/home\/me\/.kube\/x.crt of cluster "local": ENOENT/,
  },
  'data that is not PEM': {
    config: config({ cluster: { 'certificate-authority-data': 'AAAA' } }),
    want: /not PEM in base64/,
  },
  'a certificate without its key': {
    config: config({ user: { 'client-certificate-data': DATA } }),
    want: /only one of client-certificate and client-key/,
  },
  'both an authority and no verification': {
    config: config({ cluster: { 'certificate-authority-data': DATA, 'insecure-skip-tls-verify': true } }),
    want: /expected one of them/,
  },
  'an exec plugin if no plugins may run': {
    config: config({ user: { exec: { command: 'aws' } } }),
    want: /user "admin" of the kubeconfig: exec is not supported/,
  },
  'an auth provider if no plugins may run': {
    config: config({ user: { 'auth-provider': { name: 'gcp' } } }),
    want: /auth-provider is not supported/,
  },
  'a password': { config: config({ user: { username: 'a', password: 'b' } }), want: /username is not supported/ },
  impersonation: { config: config({ user: { token: 'a', as: 'root' } }), want: /as is not supported/ },
  'a proxy': { config: config({ cluster: { 'proxy-url': 'http://p' } }), want: /proxy-url is not supported/ },
  'a token that is not a string': {
    config: config({ user: { token: 7 } }),
    want: /token of user "admin" is not a string/,
  },
  'too many aliases': {
    config: `a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [${'*a,'.repeat(20)}]\nc: [${'*b,'.repeat(20)}]`,
    want: /Cannot read the kubeconfig/,
  },
};

for (const [sentence, { config: value, context, want }] of Object.entries(refused)) {
  test(`kubeconfig refuses ${sentence}`, () => {
    assert.throws(() => load(value, context), want);
    assert.throws(() => load(value, context), KubeconfigError);
  });
}

const EXEC = { apiVersion: 'client.authentication.k8s.io/v1', command: './login', interactiveMode: 'Never' };

/** Loads a kubeconfig whose plugin prints its own path as the token. */
function loadWithPlugin(user: object, overrides: { server?: string } = {}) {
  const calls: PluginCall[] = [];
  const plugins: PluginHost = {
    hasTerminal: false,
    clock: new FakeClock(),
    async run(call) {
      calls.push(call);
      const output = { kind: 'ExecCredential', apiVersion: EXEC.apiVersion, status: { token: call.command } };
      return { kind: 'exited', code: 0, stdout: JSON.stringify(output) };
    },
  };
  const options = { directory: '/home/me/.kube', readFile, plugins, ...overrides };
  return { access: loadKubeconfig(stringify(config({ user })), options), calls };
}

test('kubeconfig: runs an exec plugin only when its credential is needed', async () => {
  const { access, calls } = loadWithPlugin({ exec: EXEC });
  assert.equal(calls.length, 0);
  assert.equal((await access.credentials?.current())?.token, '/home/me/.kube/login');
});

test('kubeconfig: passes another server to the exec plugin', async () => {
  const exec = { ...EXEC, provideClusterInfo: true };
  const { access, calls } = loadWithPlugin({ exec }, { server: 'https://other' });
  await access.credentials?.current();
  const info = JSON.parse(calls[0]?.env['KUBERNETES_EXEC_INFO'] ?? '');
  assert.deepEqual([access.server, info.spec.cluster.server], ['https://other', 'https://other']);
});

test('kubeconfig: prefers a token to an exec plugin', () => {
  for (const fixed of [{ token: 'a' }, { tokenFile: 'b' }]) {
    assert.equal(loadWithPlugin({ exec: EXEC, ...fixed }).access.credentials, undefined);
  }
});

test('kubeconfig refuses an auth provider beside an exec plugin, and unsupported providers', () => {
  const provider = { 'auth-provider': { name: 'gcp' } };
  assert.throws(() => loadWithPlugin({ exec: EXEC, ...provider }), /both exec and auth-provider/);
  assert.throws(() => loadWithPlugin(provider), /gke-gcloud-auth-plugin/);
});

test('kubeconfig: errors do not quote secrets of a file that is not YAML', () => {
  const texts = [
    'users:\n  - token: "do-not-print\n',
    'a: do-not-print\n b: x: do-not-print',
    'do-not-print: [',
    '%do-not-print',
  ];
  for (const text of texts) {
    assert.throws(
      () => load(text),
      (error: Error) => {
        assert.match(error.message, /^Cannot read the kubeconfig: it is not/);
        assert.doesNotMatch(`${error.message} ${String(error.cause)}`, /do-not-print/);
        return true;
      },
    );
  }
});

const pod: Record<string, string> = {
  '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt': 'CA',
  '/var/run/secrets/kubernetes.io/serviceaccount/namespace': 'apps\n',
};

test('reads the address from the environment of a pod and the rest from its service account', () => {
  const access = inClusterAccess((path) => pod[path]!, { host: 'fd00::1', port: '443' });
  assert.deepEqual(access, {
    server: 'https://[fd00::1]:443',
    namespace: 'apps',
    certificateAuthority: 'CA',
    tokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
    insecureSkipTlsVerify: false,
  });
  assert.throws(() => inClusterAccess(readFile, { host: '', port: undefined }), /KUBERNETES_SERVICE_HOST/);
  assert.throws(() => inClusterAccess(readFile, { host: 'h', port: '1' }), /Cannot read .*namespace/);
});
