import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientVersion, renderMismatch, renderVersion } from '#cli/connection/server-version.ts';

const client = { ...clientVersion(), gitVersion: 'v1.0.0' };

const cases: Record<string, { server: string; want: string | undefined }> = {
  'prints nothing for the same version': { server: 'v1.0.0', want: undefined },
  'prints nothing if the server reports no version': { server: '', want: undefined },
  'prints both versions if they differ': {
    server: 'v1.1.0',
    want: 'You are using a client virtctl version that is different from the KubeVirt version running in the cluster\nClient Version: v1.0.0\nServer Version: v1.1.0',
  },
};
for (const [name, { server, want }] of Object.entries(cases)) {
  test(name, () => assert.equal(renderMismatch(client, { ...client, gitVersion: server }), want));
}

test('renders a version like Go', () => {
  assert.match(
    renderVersion(client),
    /^version\.Info\{GitVersion:"v1\.0\.0", GitCommit:"", .*, Platform:"[a-z0-9/]+"\}$/,
  );
});
