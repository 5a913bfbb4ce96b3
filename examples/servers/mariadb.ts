import { execFileSync } from 'node:child_process'
import { chownSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { freePort } from './free-port.js'
import { installedProgram } from './installed-program.js'
import { type OwnServer, startServer } from './own-server.js'

/** The server of MySQL itself, 8.0.19 or later, to be tried in place of MariaDB. */
const MYSQL = process.env.ONCE_PER_KEY_MYSQLD

let program = MYSQL

/** Where it is; on Debian as root it is installed when it is missing. */
export function mariaDbBinary(): string {
  program ??= installedProgram({
    names: ['mariadbd', 'mysqld'],
    folders: ['/usr/sbin', '/usr/libexec'],
    debianPackage: 'mariadb-server',
    suits: (version) => /(\d+)\.(\d+)\.\d+-MariaDB/.test(version) && Number(RegExp.$1) >= 10,
    need: 'A real MariaDB 10.6 or later is needed (Debian: apt-get install mariadb-server; macOS: brew install mariadb, on the PATH).',
  })
  return program
}

/** The user that Debian's package has made: as root, the server runs as that one. */
function ordinaryUser(folder: string): string[] {
  if (process.getuid?.() !== 0) return []
  const [uid, gid] = ['-u', '-g'].map((option) => Number(execFileSync('id', [option, 'mysql'], { encoding: 'utf8' })))
  chownSync(folder, uid as number, gid as number)
  return ['--user=mysql']
}

function makeDatabase(binary: string, args: readonly string[], folder: string): void {
  const options = { stdio: 'pipe', cwd: folder } as const // What it says is part of its error.
  if (binary === MYSQL) {
    const first = join(folder, 'first.sql')
    writeFileSync(first, `CREATE USER root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;`)
    execFileSync(binary, [...args, '--initialize-insecure', `--init-file=${first}`], options)
    return
  }
  const installer = installedProgram({
    names: ['mariadb-install-db', 'mysql_install_db'],
    folders: [dirname(binary), '/usr/bin'],
    debianPackage: 'mariadb-server',
    need: 'The program mariadb-install-db is needed; it comes with MariaDB.',
  })
  execFileSync(installer, [...args, '--auth-root-authentication-method=normal', '--skip-test-db'], options)
}

/** Starts a server. `settings`: as in my.cnf. */
export async function startOwnMariaDb(settings: Readonly<Record<string, string>> = {}): Promise<OwnServer> {
  const binary = mariaDbBinary()
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-mariadb-'))
  const user = ordinaryUser(folder)
  const data = join(folder, 'data')
  // A server removes what others have in a folder for temporary tables, when it starts.
  const shared = [`--tmpdir=${folder}`, '--loose-innodb-log-file-size=16M', '--innodb-buffer-pool-size=32M']
  makeDatabase(binary, ['--no-defaults', ...user, `--datadir=${data}`, '--skip-name-resolve', ...shared], folder)
  const given = Object.entries(settings).map(([name, value]) => `--${name.replaceAll('_', '-')}=${value}`)
  const port = await freePort()
  const url = (database = '') => `mysql://root@127.0.0.1:${port}/${database}`
  const place = [
    `--datadir=${data}`,
    `--port=${port}`,
    `--socket=${join(folder, 'socket')}`,
    '--bind-address=127.0.0.1',
    `--secure-file-priv=${folder}`,
    '--loose-mysqlx=OFF',
  ]
  const args = ['--no-defaults', ...user, ...place, '--skip-name-resolve', ...shared, ...given]
  return startServer({ port, folder, url, program: binary, args, crash: 'SIGKILL', accepts })
}

async function accepts(uri: string): Promise<boolean> {
  try {
    const connection = await createConnection({ uri })
    await connection.end()
    return true
  } catch {
    return false
  }
}
