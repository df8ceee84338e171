module turnpike/clients

go 1.19
