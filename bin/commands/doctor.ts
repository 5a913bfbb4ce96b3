import type { CommandLine } from '../command-line.js'
import { examineRecords } from '../doctor/everywhere.js'
import type { Finding } from '../doctor/finding.js'
import { examineMySql } from '../doctor/mysql.js'
import { examinePostgres } from '../doctor/postgres.js'
import { examineRedis } from '../doctor/redis.js'
import { examineSqlite } from '../doctor/sqlite.js'
import { printJson, stripControlCharacters } from '../printed.js'
import type { Target } from '../target.js'

/** Exit code 1: something is red. */
export async function runDoctor({ options }: CommandLine, target: Target): Promise<number> {
  const findings = await collectFindings(target)
  if (options.json) printJson(findings)
  else for (const finding of findings) print(finding)
  return findings.some(({ color }) => color === 'red') ? 1 : 0
}

async function collectFindings(target: Target): Promise<readonly Finding[]> {
  switch (target.kind) {
    case 'redis':
      return [...(await examineRedis(target)), ...(await examineRecords(target))]
    case 'postgres':
    case 'mysql':
    case 'sqlite': {
      const { findings, hasTables } = await examineSqlDatabase(target)
      return hasTables ? [...findings, ...(await examineRecords(target))] : findings
    }
    case 'store':
      return []
  }
}

function examineSqlDatabase(target: Exclude<Target, { readonly kind: 'redis' | 'store' }>) {
  if (target.kind === 'postgres') return examinePostgres(target)
  return target.kind === 'mysql' ? examineMySql(target) : examineSqlite(target)
}

const CODES = { green: 32, yellow: 33, red: 31 } as const

function print({ color, about, found, wayOut }: Finding): void {
  const word = color.padEnd(6)
  const paints = process.stdout.isTTY && !process.env.NO_COLOR
  console.log(
    `${paints ? `\u001b[${CODES[color]}m${word}\u001b[0m` : word}  ${stripControlCharacters(about)}: ${stripControlCharacters(found)}`,
  )
  if (wayOut !== undefined) console.log(`        ${stripControlCharacters(wayOut)}`)
}
