require('elastic-apm-node').start({ serverUrl: 'http://127.0.0.1:9', logLevel: 'off', centralConfig: false })
