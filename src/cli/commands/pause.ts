/** virtctl pause */
import { definePauseCommand } from '#cli/pause-command.ts';

export const pause = definePauseCommand({ verb: 'pause', word: 'pause', gerund: 'pausing' }, 'Pause');
