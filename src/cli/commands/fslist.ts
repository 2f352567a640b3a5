/** virtctl fslist */
import { guestReadCommand } from '#cli/verbs/guest-read.ts';

export const fslist = guestReadCommand({
  name: 'fslist',
  read: 'filesystemlist',
  summary: 'Return full list of filesystems available on the guest machine.',
  doing: 'listing filesystems',
});
