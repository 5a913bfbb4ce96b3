require('newrelic')
