/** pods/log over real TLS on both sides: the request to the kubelet, its certificate, and how its answers are forwarded. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpsRequest } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, beforeEach, suite, test } from 'node:test';
import { createIssuer, type ExtensionServer } from '#test/support/extension-server.ts';
import { startFrontServer, type FrontServer } from '#test/support/front-server.ts';
import { aNode, aPod, startKubelet } from '#test/support/kubelet-server.ts';
import { sendHttp1Request } from '#test/support/raw-https.ts';
import type { Scope } from '#test/support/server-process.ts';

const PODS = '/api/v1/namespaces/default/pods';
const LOG = `${PODS}/web/log`;
const KUBELET_LOG = '/containerLogs/default/web/main';

suite('pods/log', () => {
  let front: FrontServer;
  let kubelet: ExtensionServer;
  let foreignKubelet: ExtensionServer;
  const cleanups: (() => void)[] = [];
  const scope: Scope = { after: (fn) => cleanups.push(fn) };

  before(async () => {
    front = await startFrontServer(scope);
    kubelet = await startKubelet(front.pkiDir);
    foreignKubelet = await startKubelet(front.pkiDir, createIssuer('another-ca'));
    for (const name of ['default', 'kube-system']) {
      await front.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
    await front.create('/api/v1/namespaces/default/serviceaccounts', account);
    await front.create('/api/v1/nodes', aNode('node-1', kubelet.port));
    await front.create('/api/v1/nodes', aNode('strange', foreignKubelet.port));
    await front.create('/api/v1/nodes', aNode('dead', 1));
    await front.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'nowhere' } });
    const pods: [string, object][] = [
      ['web', { nodeName: 'node-1' }],
      ['many', { nodeName: 'node-1', containers: ['a', 'b'], initContainers: [{ name: 'first', image: 'busybox' }] }],
      ['unscheduled', {}],
      ['lost', { nodeName: 'gone' }],
      ['on-dead', { nodeName: 'dead' }],
      ['on-nowhere', { nodeName: 'nowhere' }],
      ['on-strange', { nodeName: 'strange' }],
    ];
    for (const [name, spec] of pods) await front.create(PODS, aPod(name, spec));
  });
  beforeEach(() => void (kubelet.requests.length = 0));
  after(async () => {
    await front.stop();
    await kubelet.stop();
    await foreignKubelet.stop();
    cleanups.forEach((cleanup) => cleanup());
  });

  const plain = (text: string) => (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).end(text);
  };
  const ask = (path: string) => sendHttp1Request(front.admin, { path });

  test('the log comes from the kubelet, requested with our own client certificate', async () => {
    kubelet.on(KUBELET_LOG, plain('one\ntwo\n'));
    const { status, text, headers } = await ask(LOG);
    assert.deepEqual([status, text, headers['content-type']], [200, 'one\ntwo\n', 'text/plain']);
    assert.deepEqual(
      kubelet.requests.map(({ method, url, peer }) => ({ method, url, peer })),
      [{ method: 'GET', url: KUBELET_LOG, peer: 'kube-apiserver-kubelet-client' }],
    );
  });

  const forwarded: Record<string, { query: string; want: string }> = {
    'all options, in order': {
      query: 'timestamps=true&tailLines=5&previous=1&limitBytes=100&sinceSeconds=60&container=main',
      want: '?limitBytes=100&previous=true&sinceSeconds=60&tailLines=5&timestamps=true',
    },
    'a time in whole seconds': {
      query: 'sinceTime=2024-05-06T07:08:09.5%2B02:00',
      want: '?sinceTime=2024-05-06T05%3A08%3A09Z',
    },
    'no options that are false': { query: 'follow=false&previous=0&timestamps=False', want: '' },
    'no lines': { query: 'tailLines=0', want: '?tailLines=0' },
  };
  for (const [name, { query, want }] of Object.entries(forwarded)) {
    test(`the kubelet is asked for ${name}`, async () => {
      kubelet.on(KUBELET_LOG, plain(''));
      assert.equal((await ask(`${LOG}?${query}`)).status, 200);
      assert.equal(kubelet.requests[0]?.url, KUBELET_LOG + want);
    });
  }

  const refused: Record<string, { path: string; want: [number, string, string] }> = {
    'no such pod': { path: `${PODS}/none/log`, want: [404, 'NotFound', 'pods "none" not found'] },
    'several containers and none named': {
      path: `${PODS}/many/log`,
      want: [400, 'BadRequest', 'a container name must be specified for pod many, choose one of: [first a b]'],
    },
    'a container that does not exist': {
      path: `${PODS}/web/log?container=x`,
      want: [400, 'BadRequest', 'container x is not valid for pod web'],
    },
    'an invalid number': {
      path: `${LOG}?tailLines=x`,
      want: [400, 'BadRequest', 'strconv.ParseInt: parsing "x": invalid syntax'],
    },
    'a negative number of lines': {
      path: `${LOG}?tailLines=-1`,
      want: [
        422,
        'Invalid',
        'PodLogOptions "web" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
      ],
    },
    'no bytes': {
      path: `${LOG}?limitBytes=0`,
      want: [422, 'Invalid', 'PodLogOptions "web" is invalid: limitBytes: Invalid value: 0: must be greater than 0'],
    },
    'an invalid time': {
      path: `${LOG}?sinceTime=now`,
      want: [400, 'BadRequest', 'parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006"'],
    },
    'a node that does not exist': { path: `${PODS}/lost/log`, want: [404, 'NotFound', 'nodes "gone" not found'] },
    'a node without addresses': {
      path: `${PODS}/on-nowhere/log`,
      want: [500, '', 'no preferred addresses found; known addresses: []'],
    },
    'a node that does not answer': {
      path: `${PODS}/on-dead/log`,
      want: [
        500,
        '',
        'Get "https://127.0.0.1:1/containerLogs/default/on-dead/main": dial tcp 127.0.0.1:1: connect: connection refused',
      ],
    },
  };
  for (const [name, { path, want }] of Object.entries(refused)) {
    test(`refused: ${name}`, async () => {
      const { status, text } = await ask(path);
      const { reason = '', message } = JSON.parse(text) as { reason?: string; message: string };
      assert.deepEqual([status, reason, message], want);
    });
  }

  test('sinceSeconds and sinceTime exclude each other', async () => {
    const { status, text } = await ask(`${LOG}?sinceSeconds=5&sinceTime=2024-01-01T00:00:00Z`);
    assert.equal(status, 422);
    assert.match(text, /at most one of `sinceTime` or `sinceSeconds` may be specified/);
  });

  test('a pod that is not scheduled has an empty log', async () => {
    const { status, text } = await ask(`${PODS}/unscheduled/log`);
    assert.deepEqual([status, text], [204, '']);
  });

  const relayed: Record<string, { status: number; body: string; want: [number, string, string] }> = {
    'reports that the container is waiting': {
      status: 400,
      body: 'container "main" in pod "web" is waiting to start: ContainerCreating',
      want: [400, 'BadRequest', 'container "main" in pod "web" is waiting to start: ContainerCreating'],
    },
    fails: { status: 500, body: 'disk on fire', want: [500, 'InternalError', 'Internal error occurred: disk on fire'] },
    'does not know the container': {
      status: 404,
      body: 'nope',
      want: [404, 'NotFound', 'the server could not find the requested resource ( pods/log web)'],
    },
    'refuses the request': {
      status: 403,
      body: 'Forbidden (user=kube-apiserver-kubelet-client)',
      want: [403, 'Forbidden', 'Forbidden (user=kube-apiserver-kubelet-client) ( pods/log web)'],
    },
    'redirects the request': {
      status: 302,
      body: '',
      want: [
        302,
        '',
        'the server responded with the status code 302 but did not return more information ( pods/log web)',
      ],
    },
  };
  for (const [name, { status, body, want }] of Object.entries(relayed)) {
    test(`the answer of a kubelet that ${name} is forwarded`, async () => {
      kubelet.on(KUBELET_LOG, (_, response) => void response.writeHead(status, { location: '/' }).end(body));
      const answer = await ask(LOG);
      const { reason = '', message } = JSON.parse(answer.text) as { reason?: string; message: string };
      assert.deepEqual([answer.status, reason, message], want);
    });
  }

  test('a kubelet with a certificate of another CA is refused, unless the client skips verification', async () => {
    const path = '/containerLogs/default/on-strange/main';
    foreignKubelet.on(path, plain('trust me\n'));
    const refusedAnswer = await ask(`${PODS}/on-strange/log`);
    assert.equal(refusedAnswer.status, 500);
    assert.match(refusedAnswer.text, /x509: certificate signed by unknown authority/);
    assert.deepEqual(foreignKubelet.requests, []);
    const { text } = await ask(`${PODS}/on-strange/log?insecureSkipTLSVerifyBackend=true`);
    assert.equal(text, 'trust me\n');
  });

  test('a followed log is streamed, and ends at the kubelet when the client disconnects', async () => {
    const opened = new Promise<[IncomingMessage, ServerResponse]>((resolve) => {
      kubelet.on(KUBELET_LOG, (request, response) => resolve([request, response]));
    });
    const { hostname, port } = new URL(front.admin.server);
    const { certificateAuthority: ca, clientCertificate: cert, clientKey: key } = front.admin;
    const options = { host: hostname, port, path: `${LOG}?follow=true`, ca, cert, key, agent: false } as const;
    const outgoing = httpsRequest(options);
    outgoing.on('error', () => {});
    outgoing.end();
    const [request, response] = await opened;
    assert.equal(request.url, `${KUBELET_LOG}?follow=true`);
    response.write('first\n');
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    assert.equal(((await once(answer, 'data')) as [Buffer])[0].toString(), 'first\n');
    response.write('second\n');
    assert.equal(((await once(answer, 'data')) as [Buffer])[0].toString(), 'second\n');
    const gone = once(request.socket, 'close');
    outgoing.destroy();
    await gone;
  });

  test('the right to read pods does not include their logs', async () => {
    const { status, text } = await sendHttp1Request(front.accessOf('mallory'), { path: LOG });
    assert.equal(status, 403);
    assert.match(text, /cannot get resource \\"pods\/log\\" in API group/);
    assert.deepEqual(kubelet.requests, []);
  });
});
