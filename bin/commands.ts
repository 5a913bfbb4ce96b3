import type { CommandLine, CommandName } from './command-line.js'
import { doctor } from './commands/doctor.js'
import { forget } from './commands/forget.js'
import { inspect } from './commands/inspect.js'
import { list } from './commands/list.js'
import { resolve } from './commands/resolve.js'
import { seal } from './commands/seal.js'
import { stats } from './commands/stats.js'
import { migrate, schema } from './commands/tables.js'
import { unknown } from './commands/unknown.js'
import type { Needs, Target } from './target.js'

/** What a command does. Resolves with the exit code. */
export type Command =
  | { readonly needs: 'nothing'; run(line: CommandLine): Promise<number> }
  | { readonly needs: Needs; run(line: CommandLine, target: Target): Promise<number> }

export const commands: Readonly<Record<CommandName, Command>> = {
  unknown: { needs: 'store', run: unknown },
  list: { needs: 'store', run: list },
  inspect: { needs: 'store', run: inspect },
  resolve: { needs: 'store', run: resolve },
  forget: { needs: 'store', run: forget },
  stats: { needs: 'server', run: stats },
  doctor: { needs: 'server', run: doctor },
  schema: { needs: 'nothing', run: schema },
  migrate: { needs: 'tables', run: migrate },
  seal: { needs: 'nothing', run: seal },
}
