import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientVersion, renderMismatch, renderVersion } from '#cli/server-version.ts';

const client = { ...clientVersion(), gitVersion: 'v1.0.0' };

const cases: Record<string, { server: string; want: string | undefined }> = {
  'the same version': { server: 'v1.0.0', want: undefined },
  'a server that does not tell': { server: '', want: undefined },
  'another version': {
    server: 'v1.1.0',
    want: 'You are using a client virtctl version that is different from the KubeVirt version running in the cluster\nClient Version: v1.0.0\nServer Version: v1.1.0',
  },
};
for (const [name, { server, want }] of Object.entries(cases)) {
  test(name, () => assert.equal(renderMismatch(client, { ...client, gitVersion: server }), want));
}

test('a version is shown as Go shows it', () => {
  assert.match(
    renderVersion(client),
    /^version\.Info\{GitVersion:"v1\.0\.0", GitCommit:"", .*, Platform:"[a-z0-9/]+"\}$/,
  );
});
