/** virtctl vnc screenshot */
import { parseInstanceTarget } from '#cli/commands/access/target.ts';
import { defineCommand } from '#cli/command.ts';
import { explainFailure } from '#lib/command-line/command-error.ts';
import { switchFlag, requiredFlag } from '#lib/command-line/flag.ts';
import { writeLocalFile } from '#cli/transfer/local-files.ts';
import { verbPath } from '#cli/connection/verb-path.ts';

const MAX_PICTURE_BYTES = 64 * 1024 * 1024;

export const vncScreenshot = defineCommand({
  name: 'screenshot',
  usage: '(VMI)',
  summary: 'Create a VNC screenshot of a virtual machine instance.',
  example: [
    "  # Take a VNC screenshot of 'testvmi' in png format:",
    '  virtctl vnc screenshot testvmi -f screenshot.png',
    '',
    '  # Take one and pipe it through "display" to show it right away:',
    '  virtctl vnc screenshot testvmi -f - | display',
  ].join('\n'),
  flags: {
    file: requiredFlag(
      { name: 'file', short: 'f', help: "Where to store the screenshot in PNG format; '-' for stdout" },
      'string',
    ),
    moveCursor: switchFlag({
      name: 'move-cursor',
      short: 'm',
      help: 'Move the cursor to wake up the screen in case of screensavers',
    }),
  },
  args: 1,
  async run({ args: [target = ''], flags: { file, moveCursor }, connect, terminal }) {
    const { name, namespace } = parseInstanceTarget(target);
    const api = await connect();
    const path = `${verbPath('virtualmachineinstances', namespace ?? api.namespace, name, 'vnc/screenshot')}?moveCursor=${moveCursor}`;
    const picture = await explainFailure(
      `Cannot take a screenshot of VMI ${name}: `,
      api.getBytes(path, MAX_PICTURE_BYTES),
    );
    if (file === '-') terminal.stdout.write(picture);
    else await writeLocalFile(file, [picture], { force: true });
  },
});
