import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  buildExecInfo,
  readExecPlugin,
  type ExecPlugin,
  type ExecPluginContext,
} from '#client/credentials/exec-plugin.ts';
import { KubeconfigError } from '#client/kubeconfig-fields.ts';

const V1 = 'client.authentication.k8s.io/v1';
const V1BETA1 = 'client.authentication.k8s.io/v1beta1';
const SECRET = 'do-not-print';

const context: ExecPluginContext = {
  where: 'user "admin"',
  directory: '/home/me/.kube',
  settings: {
    server: 'https://api:6443',
    certificateAuthority: 'PEM',
    serverName: 'api.test',
    insecureSkipTlsVerify: false,
  },
  clusterFields: {},
};
const aPlugin = (fields: object = {}) => ({ apiVersion: V1, command: 'aws', interactiveMode: 'Never', ...fields });
const read = (fields: unknown, overrides: Partial<ExecPluginContext> = {}): ExecPlugin =>
  readExecPlugin(fields, { ...context, ...overrides });

const cases: Record<string, { fields: object; want: Partial<ExecPlugin> }> = {
  'fills in what is absent': {
    fields: aPlugin({ args: null, env: null }),
    want: { apiVersion: V1, command: 'aws', args: [], env: {}, installHint: undefined, cluster: undefined },
  },
  'reads arguments, variables and the hint': {
    fields: aPlugin({
      args: ['eks', 'get-token'],
      env: [{ name: 'A', value: '1' }, { name: 'B' }],
      installHint: 'install aws',
    }),
    want: { args: ['eks', 'get-token'], env: { A: '1', B: '' }, installHint: 'install aws' },
  },
  'resolves a command with a slash against the kubeconfig': {
    fields: aPlugin({ command: './bin/login' }),
    want: { command: '/home/me/.kube/bin/login' },
  },
  'keeps an absolute command': { fields: aPlugin({ command: '/opt/login' }), want: { command: '/opt/login' } },
  'defaults the interactive mode of v1beta1': {
    fields: { apiVersion: V1BETA1, command: 'aws' },
    want: { apiVersion: V1BETA1, interactiveMode: 'IfAvailable' },
  },
};
for (const [sentence, { fields, want }] of Object.entries(cases)) {
  test(`exec settings: ${sentence}`, () => {
    const plugin = read(fields);
    for (const [field, value] of Object.entries(want)) {
      assert.deepEqual(plugin[field as keyof ExecPlugin], value, field);
    }
  });
}

const refused: Record<string, { fields: unknown; want: RegExp }> = {
  'settings that are not a map': { fields: 'aws', want: /^Cannot use exec of user "admin" .*: it is not a map/ },
  'a missing command': { fields: aPlugin({ command: '' }), want: /it has no command$/ },
  'a command that is not a string': { fields: aPlugin({ command: [SECRET] }), want: /command of exec .* not a string/ },
  'a missing apiVersion': { fields: { command: 'aws' }, want: /it has no apiVersion; expected .*\/v1 or .*\/v1beta1$/ },
  v1alpha1: {
    fields: aPlugin({ apiVersion: 'client.authentication.k8s.io/v1alpha1' }),
    want: /its apiVersion is ".*v1alpha1"; expected .*; update the plugin/,
  },
  'another apiVersion': { fields: aPlugin({ apiVersion: 'v1' }), want: /its apiVersion is "v1"; expected/ },
  'v1 without an interactive mode': {
    fields: { apiVersion: V1, command: 'aws' },
    want: /it has no interactiveMode; expected one of Never, IfAvailable, Always/,
  },
  'another interactive mode': {
    fields: aPlugin({ interactiveMode: 'Sometimes' }),
    want: /its interactiveMode is "Sometimes"/,
  },
  'args that are not a list': { fields: aPlugin({ args: SECRET }), want: /args of exec .* is not a list/ },
  'args that are not strings': { fields: aPlugin({ args: [SECRET, 1] }), want: /its args are not all strings/ },
  'a variable without a name': { fields: aPlugin({ env: [{ value: SECRET }] }), want: /an entry of its env/ },
  'a variable that is not a string': {
    fields: aPlugin({ env: [{ name: SECRET, value: 7 }] }),
    want: /an entry of its env/,
  },
  'provideClusterInfo that is not a boolean': {
    fields: aPlugin({ provideClusterInfo: 'yes' }),
    want: /provideClusterInfo of exec .* is not true or false/,
  },
};
for (const [sentence, { fields, want }] of Object.entries(refused)) {
  test(`exec settings: refuses ${sentence}`, () => {
    assert.throws(
      () => read(fields),
      (error: Error) => {
        assert.ok(error instanceof KubeconfigError);
        assert.match(error.message, want);
        assert.doesNotMatch(error.message, new RegExp(SECRET));
        return true;
      },
    );
  });
}

test('passes no cluster to a plugin that does not ask for it', () => {
  assert.deepEqual(JSON.parse(buildExecInfo(read(aPlugin()), true)), {
    kind: 'ExecCredential',
    apiVersion: V1,
    spec: { interactive: true },
  });
});

test('passes the cluster and its extension to a plugin that asks for them', () => {
  const extensions = [
    { name: 'other', extension: 1 },
    { name: 'client.authentication.k8s.io/exec', extension: { audience: 'x' } },
  ];
  const plugin = read(aPlugin({ provideClusterInfo: true }), {
    clusterFields: { extensions, 'disable-compression': true },
  });
  assert.deepEqual(JSON.parse(buildExecInfo(plugin, false)).spec, {
    cluster: {
      server: 'https://api:6443',
      'tls-server-name': 'api.test',
      'certificate-authority-data': Buffer.from('PEM').toString('base64'),
      'disable-compression': true,
      config: { audience: 'x' },
    },
    interactive: false,
  });
  const settings = { server: 'https://api', insecureSkipTlsVerify: true };
  assert.deepEqual(read(aPlugin({ provideClusterInfo: true }), { settings }).cluster, {
    server: 'https://api',
    'insecure-skip-tls-verify': true,
    config: null,
  });
});
